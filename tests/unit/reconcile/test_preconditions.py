from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from specdec_operator.cluster.errors import ServerUnavailable
from specdec_operator.cluster.permissions import Permission
from specdec_operator.reconcile.preconditions import AT_REST_SECONDS, SOON_SECONDS, Preconditions
from tests.virtual_time import run_in_virtual_time, virtual_now

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import pytest

    from specdec_operator.reconcile.definitions import Definitions
    from specdec_operator.reconcile.rights_check import RightsCheck

JOBS = Permission(verb="create", group="batch", resource="jobs", namespace="team")
EVENTS = Permission(verb="create", group="events.k8s.io", resource="events", optional=True)


class World:
    """Rights and CRDs as they are, and what was told of them."""

    def __init__(self) -> None:
        self.missing: tuple[Permission, ...] = ()
        self.can_lead = True
        self.gaps: dict[str, tuple[str, ...]] = {}
        self.is_away = False
        self.defect: Exception | None = None
        self.looked: list[float] = []
        self.told: list[tuple[str, str]] = []
        self.shown: list[int] = []

    async def look(self) -> None:
        if not self.looked or self.looked[-1] != virtual_now():
            self.looked.append(virtual_now())
        if self.is_away:
            raise ServerUnavailable(status=503)
        if self.defect:
            raise self.defect

    async def account(self) -> str:
        return "me"

    def permissions_missing(self, missing: Any) -> None:
        self.shown.append(len(list(missing)))

    def definitions_outdated(self, gaps: Any) -> None:
        pass

    def tell(self, topic: str, said: str) -> None:
        self.told.append((topic, said))


class Rights:
    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def missing(self) -> tuple[Permission, ...]:
        return self.world.missing

    @property
    def can_lead(self) -> bool:
        return self.world.can_lead

    async def look(self) -> None:
        pass

    async def account(self) -> str:
        return "me"


def play(scene: Callable[[World, Preconditions], Awaitable[None]]) -> World:
    """Play a scene in virtual time."""

    async def played() -> World:
        world = World()
        made = Preconditions(
            cast("RightsCheck", Rights(world)),
            cast("Definitions", world),
            figures=world,
            missing_changed=world.tell,
        )
        await scene(world, made)
        return world

    return run_in_virtual_time(played())


async def running(preconditions: Preconditions, seconds: float) -> None:
    task = asyncio.create_task(preconditions.run())
    await asyncio.sleep(seconds)
    task.cancel()


def test_what_is_missing_is_told_once_and_taken_back(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(world: World, preconditions: Preconditions) -> None:
        world.missing = (JOBS,)
        await preconditions.look()
        await preconditions.look()
        world.missing = ()
        await preconditions.look()

    told = play(scene).told
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert (len(warnings), len(told), told[-1]) == (1, 2, ("rights", ""))


def test_a_missing_right_is_told_with_the_account() -> None:
    async def scene(world: World, preconditions: Preconditions) -> None:
        world.missing = (JOBS,)
        await preconditions.look()

    ((topic, said),) = play(scene).told
    assert topic == "rights"
    assert said.endswith("kubectl auth can-i create jobs.batch --namespace=team --as=me")


def test_an_optional_right_holds_up_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(world: World, preconditions: Preconditions) -> None:
        world.missing = (EVENTS,)
        await preconditions.look()

    world = play(scene)
    assert (world.told, world.shown) == ([], [1])
    assert "may not create events.events.k8s.io in all namespaces" in caplog.text


def test_an_older_crd_is_told() -> None:
    async def scene(world: World, preconditions: Preconditions) -> None:
        world.gaps = {"SpeculativeModel": ("spec.x",)}
        await preconditions.look()

    ((topic, said),) = play(scene).told
    assert (topic, "SpeculativeModel lacks spec.x" in said) == ("definitions", True)


def test_an_outage_tells_nothing() -> None:
    async def scene(world: World, preconditions: Preconditions) -> None:
        world.is_away = True
        await preconditions.look()

    assert play(scene).told == []


def test_a_look_that_fails_is_followed_by_the_next(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(world: World, preconditions: Preconditions) -> None:
        world.defect = KeyError("paths")
        await running(preconditions, 3 * AT_REST_SECONDS + 1)

    assert (len(play(scene).looked), "what is missing can't be told" in caplog.text) == (3, True)


def test_at_rest_it_looks_once_a_minute() -> None:
    async def scene(_world: World, preconditions: Preconditions) -> None:
        await running(preconditions, 10 * AT_REST_SECONDS + 1)

    assert len(play(scene).looked) == 10


def test_while_something_is_missing_it_looks_every_few_seconds() -> None:
    async def scene(world: World, preconditions: Preconditions) -> None:
        world.missing = (JOBS,)
        await preconditions.look()
        await running(preconditions, 10 * SOON_SECONDS + 1)

    assert len(play(scene).looked) == 11


def test_a_refusal_makes_it_look_soon() -> None:
    async def scene(_world: World, preconditions: Preconditions) -> None:
        preconditions.look_soon()
        await running(preconditions, SOON_SECONDS + 1)

    assert play(scene).looked == [SOON_SECONDS]


def test_many_refusals_are_few_looks() -> None:
    async def scene(_world: World, preconditions: Preconditions) -> None:
        task = asyncio.create_task(preconditions.run())
        for _ in range(600):
            preconditions.look_soon()
            await asyncio.sleep(0.1)
        task.cancel()

    assert len(play(scene).looked) <= 60 / SOON_SECONDS


def test_what_comes_is_said_to_those_who_wait_for_it() -> None:
    async def scene(world: World, preconditions: Preconditions) -> None:
        world.missing = (JOBS,)
        await preconditions.look()
        assert not preconditions.recovered.is_set()
        world.missing = ()
        await preconditions.look()
        assert preconditions.recovered.is_set()

    play(scene)


def test_a_process_without_rights_on_its_lease_waits_for_them() -> None:
    async def scene(world: World, preconditions: Preconditions) -> None:
        world.can_lead = False
        waiting = asyncio.create_task(preconditions.until_electable(asyncio.Event()))
        await asyncio.sleep(3 * SOON_SECONDS)
        assert not waiting.done()
        world.can_lead = True
        await waiting

    assert play(scene).looked[-1] <= 4 * SOON_SECONDS


def test_a_stop_ends_that_wait() -> None:
    async def scene(world: World, preconditions: Preconditions) -> None:
        world.can_lead = False
        stop = asyncio.Event()
        stop.set()
        await preconditions.until_electable(stop)

    assert len(play(scene).looked) == 1
