from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from specdec_operator.cluster.errors import Forbidden, NotFound
from specdec_operator.reconcile.other_controller import (
    OtherController,
    Responsibility,
    announce_other,
    other_controller,
)
from specdec_operator.reconcile.queue import Key

if TYPE_CHECKING:
    from specdec_operator.cluster.errors import ApiError
    from specdec_operator.reconcile.context import Context, Gauges

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OTHER = "elsewhere/another"


class Leases:
    """Holds one Lease, or refuses to show it."""

    def __init__(self, *, renewed: datetime = NOW, error: ApiError | None = None) -> None:
        self.renewed = renewed
        self.error = error

    async def get(self, *_: Any, **__: Any) -> dict[str, Any]:
        if self.error:
            raise self.error
        return {"spec": {"holderIdentity": "a", "renewTime": self.renewed.isoformat(), "leaseDurationSeconds": 15}}


class Events:
    """Keeps the notes of Events."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    async def record(self, _regarding: Any, *, note: str, **_: Any) -> None:
        self.notes.append(note)


def context(leases: Leases, events: Events | None = None) -> Context:
    made = SimpleNamespace(
        api=leases, events=events, configuration=SimpleNamespace(instance="here/mine"), now=lambda: NOW
    )
    return cast("Context", made)


async def test_one_that_holds_its_lease_is_alive() -> None:
    assert await other_controller(context(Leases()), OTHER) == OtherController(instance=OTHER)


async def test_one_whose_lease_may_not_be_read_counts_as_alive() -> None:
    found = await other_controller(context(Leases(error=Forbidden(status=403))), OTHER)
    assert found
    assert (found.instance, "grant get on leases" in found.unseen) == (OTHER, True)


@pytest.mark.parametrize(
    "leases", [Leases(error=NotFound(status=404)), Leases(renewed=NOW - timedelta(hours=1))], ids=["gone", "ended"]
)
async def test_the_model_of_one_that_is_gone_is_taken_over(leases: Leases) -> None:
    assert await other_controller(context(leases), OTHER) is None


@pytest.mark.parametrize("controller", ["", "here/mine"])
async def test_a_model_of_nobody_else_is_this_operators(controller: str) -> None:
    assert await other_controller(context(Leases()), controller) is None


async def test_the_event_says_that_the_lease_could_not_be_read() -> None:
    events = Events()
    other = OtherController(instance=OTHER, unseen="its Lease may not be read")
    await announce_other(context(Leases(), events), {"metadata": {"namespace": "team"}}, other)
    assert f"operator {OTHER} writes this model's status and may be alive: its Lease may not be read" in events.notes[0]


async def test_the_event_says_what_to_do() -> None:
    events = Events()
    await announce_other(
        context(Leases(), events), {"metadata": {"namespace": "team"}}, OtherController(instance=OTHER)
    )
    assert "let only one of them watch namespace team" in events.notes[0]


KEY = Key(kind="SpeculativeModel", namespace="team", name="m")


class Shown:
    """Keeps which controllers are shown."""

    def __init__(self) -> None:
        self.controllers: list[str] = []

    def other_controller(self, *, controller: str, **_: Any) -> None:
        self.controllers.append(controller)


def responsibility(shown: Shown) -> Responsibility:
    return Responsibility(gauges=cast("Gauges", shown), instance="here/mine")


def test_a_model_that_is_left_alone_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    shown = Shown()
    models = responsibility(shown)
    for _ in range(3):
        models.leave(KEY, OtherController(instance=OTHER))
    assert (len(caplog.records), shown.controllers) == (1, [OTHER])
    assert f"SpeculativeModel team/m is left alone: operator {OTHER}" in caplog.text


def test_a_model_that_is_taken_over_is_shown_no_more() -> None:
    shown = Shown()
    models = responsibility(shown)
    models.leave(KEY, OtherController(instance=OTHER))
    models.take(KEY)
    models.take(KEY)
    assert (shown.controllers, models.leaves(KEY), models.has(KEY)) == ([OTHER, ""], False, True)


def test_a_third_operator_is_said_too(caplog: pytest.LogCaptureFixture) -> None:
    models = responsibility(Shown())
    models.leave(KEY, OtherController(instance=OTHER))
    models.leave(KEY, OtherController(instance="a/third"))
    assert (len(caplog.records), models.leaves(KEY)) == (2, True)


def test_a_model_that_is_lost_to_another_operator_is_no_longer_its_own() -> None:
    models = responsibility(Shown())
    models.take(KEY)
    models.leave(KEY, OtherController(instance=OTHER))
    assert not models.has(KEY)


def test_a_model_that_is_gone_is_nobodys() -> None:
    models = responsibility(Shown())
    models.take(KEY)
    models.forget(KEY)
    assert not models.has(KEY)
