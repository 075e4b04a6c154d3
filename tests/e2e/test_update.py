from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from testbed.demo.errors import DemoError
from testbed.demo.models import serves
from testbed.demo.prompt import ask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.place import Json, Place

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]

PROMPT, ANSWER = "The capital of France is", "Paris, a city on the river Seine."
PAUSE_SECONDS = 0.3
SECONDS = 60.0


@dataclass
class Answered:
    """Requests sent one after the other: when each was sent, and whether it was answered rightly."""

    requests: list[tuple[datetime, bool]] = field(default_factory=list)

    def failures(self) -> list[datetime]:
        return [sent for sent, answered in self.requests if not answered]

    def until_right(self) -> None:
        """Wait for the right answer to a request that is sent from now on."""
        now, deadline = datetime.now(UTC), time.monotonic() + SECONDS
        while not any(sent > now and right for sent, right in list(self.requests)):
            assert time.monotonic() < deadline
            time.sleep(PAUSE_SECONDS)

    def successes_between(self, first: datetime, last: datetime) -> int:
        return sum(answered for sent, answered in self.requests if first < sent < last)


@contextmanager
def asked_all_the_while(place: Place, name: str) -> Iterator[Answered]:
    """Ask a model until the body ends."""
    address, status = place.address(name), place.model(name)["status"]
    answered, ended = Answered(), threading.Event()

    def ask_on() -> None:
        while not ended.wait(PAUSE_SECONDS):
            sent = datetime.now(UTC)
            try:
                right = ask(address, status, PROMPT).text == ANSWER
            except DemoError:
                right = False
            answered.requests.append((sent, right))

    asking = threading.Thread(target=ask_on, daemon=True)
    asking.start()
    try:
        yield answered
    finally:
        ended.set()
        asking.join()


def updated(place: Place, name: str, spec: Json) -> Json:
    """Change a spec, and return the model once another revision serves."""
    before = place.until_ready(name)["status"]["currentRevision"]
    place.patch(name, spec)

    def holds(model: Json) -> bool:
        return serves(model) and model["status"]["currentRevision"] != before

    return place.until(name, "another revision serves", holds)


def test_the_old_pod_serves_until_the_new_revision_is_prepared(place: Place) -> None:
    place.until_ready("pair")
    with asked_all_the_while(place, "pair") as answered:
        model = updated(place, "pair", {"speculation": {"maxDraftTokens": 4}})
        answered.until_right()
    assembly = place.artifact("pair", "assembly")["name"]
    (job,) = place.items("jobs", f"--selector=specdec.dev/artifact={assembly}")
    prepared = datetime.fromisoformat(job["status"]["completionTime"])
    failures = answered.failures()
    assert all(failure >= prepared for failure in failures)
    assert not failures or answered.successes_between(failures[0], failures[-1]) == 0
    assert place.served_revision("pair") == model["status"]["currentRevision"]


def test_no_request_fails_when_new_pods_start_beside_the_old(place: Place) -> None:
    place.until_ready("pair")
    with asked_all_the_while(place, "pair") as answered:
        model = updated(place, "pair", {"update": {"strategy": "Surge"}, "speculation": {"maxDraftTokens": 5}})
        time.sleep(2 * PAUSE_SECONDS)
    assert len(answered.requests) > 3
    assert answered.failures() == []
    assert place.served_revision("pair") == model["status"]["currentRevision"]
