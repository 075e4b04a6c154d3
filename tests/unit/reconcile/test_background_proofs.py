"""Proofs beside the workers: quick to look again, slow to give up, fair between namespaces."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.reconcile.background_proofs import BackgroundProofs, Standing
from specdec_operator.reconcile.queue import Key
from specdec_operator.triton.proof import Endpoint, Outcome, Proof, ProofRequest
from tests.virtual_time import run_in_virtual_time, virtual_now

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

SERVED = Proof(outcome=Outcome.SERVED, message="answered")
WRONG = Proof(outcome=Outcome.WRONG_ANSWER, message="no text")
UNREACHABLE = Proof(outcome=Outcome.UNREACHABLE, message="refused")
HANGS = 60.0


def key(name: str = "m", namespace: str = "ns") -> Key:
    return Key("SpeculativeModel", namespace, name)


class Servers:
    """Proves by a script.

    Attributes:
        script: what proofs of a host find, one after another, the last for ever; a number is seconds that one takes.
        started: when proofs of a host began.
    """

    def __init__(self, **script: list[Proof | float]) -> None:
        self.script = script
        self.started: dict[str, list[float]] = {}
        self.ended: list[str] = []

    async def prove(self, endpoint: Endpoint, request: ProofRequest) -> Proof:
        del request
        self.started.setdefault(endpoint.host, []).append(round(virtual_now(), 2))
        script = self.script.get(endpoint.host, [SERVED])
        found = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(found, Proof):
            return found
        try:
            await asyncio.sleep(found)
        finally:
            self.ended.append(endpoint.host)
        return WRONG


class Scene:
    """Models that run again when they are told to, or when a proof is due."""

    def __init__(self, servers: Servers, **more: Any) -> None:
        self.servers = servers
        self.woken: list[Key] = []
        self.proofs = BackgroundProofs(servers, again=self.woken.append, clock=virtual_now, **more)

    async def look(self, of: Key, about: str = "r1") -> Standing:
        request = ProofRequest(model="m", tensors=(), output="text_output")
        return await self.proofs.standing(of, about=about, endpoint=Endpoint(of.name, 8000), request=request)

    async def reconcile(self, of: Key, *, seconds: float) -> Proof | None:
        """Look again whenever asked to, as the queue does; the proof, or None if there is none in time."""
        end = virtual_now() + seconds
        while virtual_now() < end:
            standing = await self.look(of)
            if standing.proof is SERVED:
                return SERVED
            wait = standing.again_after
            deadline = min(end, virtual_now() + wait) if wait is not None else end
            while virtual_now() < deadline and of not in self.woken:  # noqa: ASYNC110 - time that jumps
                await asyncio.sleep(0.05)
            self.woken = [woken for woken in self.woken if woken != of]
        return None


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_in_virtual_time(scenario())


def test_an_answer_in_time_costs_one_look() -> None:
    async def scenario() -> None:
        scene = Scene(Servers())

        assert (await scene.look(key())).proof is SERVED
        assert scene.woken == []

    play(scenario)


def test_a_server_that_hangs_keeps_a_run_for_a_moment_only() -> None:
    async def scenario() -> None:
        scene = Scene(Servers(m=[HANGS]))
        standing = await scene.look(key())

        assert (standing.proof, standing.again_after, virtual_now() < 1) == (None, None, True)
        await scene.proofs.close()

    play(scenario)


def test_the_model_runs_again_when_its_proof_ends() -> None:
    async def scenario() -> None:
        scene = Scene(Servers(m=[5.0]))
        await scene.look(key())
        await asyncio.sleep(5.0)

        assert scene.woken == [key()]
        assert (await scene.look(key())).proof is WRONG

    play(scenario)


@pytest.mark.parametrize("first", [UNREACHABLE, WRONG])
def test_a_failed_proof_is_made_again_soon_and_then_ever_more_slowly(first: Proof) -> None:
    async def scenario() -> None:
        scene = Scene(Servers(m=[first]))
        await scene.reconcile(key(), seconds=200)
        times = scene.servers.started["m"]
        waits = [round(after - before) for before, after in itertools.pairwise(times)]

        assert times[1] <= 0.6
        assert waits[1:] == [1, 2, 4, 8, 16, 30, 30, 30, 30, 30]

    play(scenario)


def test_an_endpoint_that_is_programmed_late_is_proven_within_seconds() -> None:
    async def scenario() -> None:
        scene = Scene(Servers(m=[UNREACHABLE, UNREACHABLE, SERVED]))

        assert await scene.reconcile(key(), seconds=3) is SERVED

    play(scenario)


def test_how_long_proofs_have_failed_is_told() -> None:
    async def scenario() -> None:
        scene = Scene(Servers(m=[UNREACHABLE]))
        await scene.reconcile(key(), seconds=20)

        assert 19 < (await scene.look(key())).failing_seconds < 21

    play(scenario)


def test_a_proof_of_other_pods_takes_the_place_of_the_one_under_way() -> None:
    async def scenario() -> None:
        scene = Scene(Servers(m=[HANGS, SERVED]))
        await scene.look(key(), about="r1")

        assert (await scene.look(key(), about="r2")).proof is SERVED
        assert scene.servers.ended == ["m"]

    play(scenario)


def test_a_model_that_is_gone_is_not_proven_further() -> None:
    async def scenario() -> None:
        scene = Scene(Servers(m=[HANGS]))
        await scene.look(key())
        scene.proofs.forget(key())
        await asyncio.sleep(2 * HANGS)

        assert (scene.servers.ended, scene.woken) == (["m"], [])

    play(scenario)


def test_a_namespace_full_of_hung_servers_delays_no_other() -> None:
    async def scenario() -> None:
        hung: dict[str, list[Proof | float]] = {f"h{number}": [HANGS] for number in range(40)}
        scene = Scene(Servers(**hung))
        for name in hung:
            await asyncio.gather(scene.look(key(name, "tenant-a")))
        before = virtual_now()

        assert (await scene.look(key("m", "tenant-b"))).proof is SERVED
        assert virtual_now() - before < 0.1
        assert len(scene.servers.started) == 9
        await scene.proofs.close()

    play(scenario)


def test_a_server_that_is_well_goes_before_those_of_its_namespace_that_hang_again_and_again() -> None:
    async def scenario() -> None:
        hung: dict[str, list[Proof | float]] = {f"h{number}": [HANGS] for number in range(40)}
        scene = Scene(Servers(**hung))
        running = [asyncio.create_task(scene.reconcile(key(name), seconds=1800)) for name in hung]
        await asyncio.sleep(900)
        before = virtual_now()

        assert await scene.reconcile(key("m"), seconds=600) is SERVED
        assert virtual_now() - before < HANGS
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await scene.proofs.close()

    play(scenario)


def test_a_cancelled_proof_gives_its_place_to_the_next() -> None:
    async def scenario() -> None:
        scene = Scene(Servers(a=[HANGS], b=[HANGS]), places=1)
        await scene.look(key("a"))
        await scene.look(key("b"))
        scene.proofs.forget(key("b"))
        scene.proofs.forget(key("a"))
        await asyncio.sleep(0)

        assert (await scene.look(key("m"))).proof is SERVED

    play(scenario)


def test_a_defect_of_the_prover_is_told_and_proven_again(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Servers):
        async def prove(self, endpoint: Endpoint, request: ProofRequest) -> Proof:
            await super().prove(endpoint, request)
            raise RuntimeError("broken")

    async def scenario() -> None:
        standing = await Scene(Broken()).look(key())

        assert (standing.proof and standing.proof.outcome, standing.again_after is not None) == (
            Outcome.WRONG_ANSWER,
            True,
        )

    play(scenario)
    assert "a proof failed" in caplog.text
