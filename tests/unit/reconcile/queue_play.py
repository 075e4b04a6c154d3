"""Scenes with a work queue in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from specdec_operator.reconcile.queue import Key, WorkQueue
from tests.virtual_time import run_in_virtual_time, virtual_now

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

A = Key("SpeculativeModel", "ns", "a")
B = Key("ModelArtifact", "ns", "b")


def queue(**rest: Any) -> WorkQueue:
    return WorkQueue(clock=virtual_now, **{"jitter": lambda: 0.0, **rest})


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_in_virtual_time(scenario())


async def next_key(work: WorkQueue, *, within: float) -> Key | None:
    try:
        async with asyncio.timeout(within):
            return await work.get()
    except TimeoutError:
        return None
