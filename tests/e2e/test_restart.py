from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.casting import TARGET, engine, hub

if TYPE_CHECKING:
    from tests.e2e.place import Place

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]


def build_jobs(place: Place) -> list[str]:
    return [
        f"{job['metadata']['name']} {job['metadata']['uid']}"
        for job in place.items("jobs")
        if job["metadata"]["name"].startswith("engine-")
    ]


def test_an_operator_killed_during_a_build_goes_on_and_builds_nothing_twice(place: Place) -> None:
    operator = place.session.operator
    place.apply_model("engine", engine(hub(TARGET), replicas=0))
    deadline = time.monotonic() + 120
    while not (jobs := build_jobs(place)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    operator.kill()
    place.shorten_lease()
    asyncio.run(operator.ready())
    place.until_condition("engine", "EnginesReady", "True")
    assert build_jobs(place) == jobs
