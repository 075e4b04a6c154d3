from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from specdec_operator.cluster.errors import ClusterError, NotFound, ServerUnavailable
from specdec_operator.cluster.events import EventLimits, EventRecorder

Json = dict[str, Any]


def model(uid: str = "u") -> Json:
    metadata = {"namespace": "a", "name": "llama", "uid": uid, "resourceVersion": "7"}
    return {"apiVersion": "specdec.dev/v1alpha1", "kind": "SpeculativeModel", "metadata": metadata}


class Desk:
    """A recorder, and the requests that it sends."""

    def __init__(self, **limits: Any) -> None:
        self.created: list[Json] = []
        self.patched: list[Json] = []
        self.fails: ClusterError | None = None
        self.time = 0.0
        api: Any = self
        self.recorder = EventRecorder(
            api,
            controller="specdec.dev/operator",
            instance="pod-1",
            limits=EventLimits(**limits),
            clock=lambda: self.time,
            now=lambda: datetime(2026, 11, 21, tzinfo=UTC),
        )

    async def create(self, _resource: Any, body: Json) -> Json:
        if self.fails:
            raise self.fails
        self.created.append(body)
        return body

    async def patch_merge(self, _resource: Any, *, patch: Json, **_: Any) -> Json:
        if self.fails:
            failure, self.fails = self.fails, None
            raise failure
        self.patched.append(patch)
        return patch

    async def say(self, note: str = "n", *, uid: str = "u") -> None:
        await self.recorder.record(model(uid), kind="Warning", reason="FetchFailed", note=note, action="Fetch")


async def test_an_event_says_who_saw_what() -> None:
    desk = Desk()
    await desk.say("no such repository")
    event = desk.created[0]
    wanted = ("Warning", "FetchFailed", "Fetch", "no such repository", "specdec.dev/operator", "pod-1")
    fields = ("type", "reason", "action", "note", "reportingController", "reportingInstance")
    assert tuple(event[field] for field in fields) == wanted


async def test_an_event_lies_beside_its_object() -> None:
    desk = Desk()
    await desk.say()
    event = desk.created[0]
    assert (event["metadata"]["namespace"], event["regarding"]["uid"]) == ("a", "u")


async def test_a_long_note_is_cut() -> None:
    desk = Desk()
    await desk.say("x" * 5000)
    assert len(desk.created[0]["note"]) == 1024


@pytest.mark.parametrize("letter", ["é", "日", "😀"])
@pytest.mark.parametrize("start", ["", "x", "xy", "xyz"])
async def test_a_long_note_is_cut_by_the_bytes_that_the_api_server_counts(letter: str, start: str) -> None:
    desk = Desk()
    await desk.say(start + letter * 1000)
    note = desk.created[0]["note"]
    assert 1024 - 4 < len(note.encode()) <= 1024
    assert (start + letter * 1000).startswith(note)


async def test_half_a_character_of_a_note_is_no_obstacle() -> None:
    desk = Desk()
    await desk.say("a\ud800b")
    assert desk.created[0]["note"] == "a?b"


async def test_a_repetition_is_not_written_at_once() -> None:
    desk = Desk()
    for _ in range(5):
        await desk.say()
    assert (len(desk.created), len(desk.patched)) == (1, 0)


async def test_repetitions_are_counted_and_written_now_and_then() -> None:
    desk = Desk(series_interval=300)
    for _ in range(5):
        await desk.say()
    desk.time = 301
    await desk.say()
    assert [patch["series"]["count"] for patch in desk.patched] == [6]


async def test_another_note_is_another_event() -> None:
    desk = Desk()
    await desk.say("one")
    await desk.say("two")
    assert len(desk.created) == 2


async def test_an_event_that_expired_on_the_server_is_written_anew() -> None:
    desk = Desk(series_interval=300)
    await desk.say()
    desk.time, desk.fails = 7200, NotFound(status=404)
    await desk.say()
    assert len(desk.created) == 2


async def test_an_object_that_says_too_much_is_cut_short() -> None:
    desk = Desk(burst=3)
    for number in range(10):
        await desk.say(str(number))
    assert len(desk.created) == 3


async def test_a_quiet_time_allows_an_object_to_speak_again() -> None:
    desk = Desk(burst=3, refill=60)
    for number in range(10):
        await desk.say(str(number))
    desk.time = 61
    await desk.say("later")
    assert desk.created[-1]["note"] == "later"


async def test_a_noisy_object_does_not_silence_others() -> None:
    desk = Desk(burst=1)
    await desk.say("one")
    await desk.say("two")
    await desk.say("three", uid="other")
    assert [event["note"] for event in desk.created] == ["one", "three"]


async def test_a_failure_to_record_stays_here() -> None:
    desk = Desk()
    desk.fails = ServerUnavailable(status=503)
    await desk.say()
    assert desk.created == []


async def test_an_event_that_could_not_be_written_is_tried_again_the_next_time() -> None:
    desk = Desk()
    desk.fails = ServerUnavailable(status=503)
    await desk.say()
    desk.fails = None
    await desk.say()
    assert len(desk.created) == 1
