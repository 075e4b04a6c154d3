from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from specdec_operator.api.v1alpha1.speculative_model import parse
from specdec_operator.cluster.errors import Forbidden, NotFound
from specdec_operator.reconcile.other_controller import OtherController, announce_other, other_controller

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.cluster.errors import ApiError
    from specdec_operator.reconcile.context import Context

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


def model(controller: str = OTHER) -> SpeculativeModel:
    source = {"source": {"huggingFace": {"repository": "a/b"}}}
    spec = {"target": source, "speculation": {"method": "None"}}
    return parse({"metadata": {"name": "m"}, "spec": spec, "status": {"controller": controller}})


async def test_one_that_holds_its_lease_is_alive() -> None:
    assert await other_controller(context(Leases()), model()) == OtherController(instance=OTHER)


async def test_one_whose_lease_may_not_be_read_counts_as_alive() -> None:
    found = await other_controller(context(Leases(error=Forbidden(status=403))), model())
    assert found
    assert (found.instance, "grant get on leases" in found.unseen) == (OTHER, True)


@pytest.mark.parametrize(
    "leases", [Leases(error=NotFound(status=404)), Leases(renewed=NOW - timedelta(hours=1))], ids=["gone", "ended"]
)
async def test_the_model_of_one_that_is_gone_is_taken_over(leases: Leases) -> None:
    assert await other_controller(context(leases), model()) is None


@pytest.mark.parametrize("controller", ["", "here/mine"])
async def test_a_model_of_nobody_else_is_this_operators(controller: str) -> None:
    assert await other_controller(context(Leases()), model(controller)) is None


async def test_the_event_says_that_the_lease_could_not_be_read() -> None:
    events = Events()
    other = OtherController(instance=OTHER, unseen="its Lease may not be read")
    await announce_other(context(Leases(), events), {}, other)
    assert f"operator {OTHER} writes this model's status and may be alive: its Lease may not be read" in events.notes[0]
