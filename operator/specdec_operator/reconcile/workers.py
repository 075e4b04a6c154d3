"""The workers of the queue: the boundary at which a failed run becomes a log line and a retry."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import ClusterError, Conflict
from specdec_operator.reconcile.queue import Key, QueueShutDown, Result

if TYPE_CHECKING:
    from specdec_operator.reconcile.queue import Outcome, WorkQueue

Reconcile = Callable[[Key], Awaitable[Result]]

_CONFLICT_SECONDS = 2.0
"""Another read is all that a conflict needs, however often somebody else was faster."""
_log = logging.getLogger(__name__)


async def run_workers(queue: WorkQueue, reconcile: Reconcile, *, workers: int) -> None:
    """Run keys until the queue is shut down.

    A run that raises is logged with its key and comes back after the key's backoff. Cancelling stops runs where they
    are.

    Args:
        queue: where keys come from.
        reconcile: runs one key.
        workers: how many keys run at once.
    """
    async with asyncio.TaskGroup() as group:
        for number in range(workers):
            group.create_task(_work(queue, reconcile), name=f"worker-{number}")


async def _work(queue: WorkQueue, reconcile: Reconcile) -> None:
    while True:
        try:
            key = await queue.get()
        except QueueShutDown:
            return
        started = queue.clock()
        outcome: Outcome = "error"
        try:
            outcome = await _run(queue, reconcile, key)
        finally:
            queue.observer.finished(key, seconds=queue.clock() - started, outcome=outcome)
            queue.done(key)


async def _run(queue: WorkQueue, reconcile: Reconcile, key: Key) -> Outcome:
    try:
        result = await reconcile(key)
    except Conflict as error:
        delay = queue.retry(key, at_most=_CONFLICT_SECONDS)
        _log.info("somebody else was faster: %s", error, extra={**_fields(key), "retry_seconds": delay})
        return "error"
    except ClusterError as error:
        delay = queue.retry(key)
        # Outages are part of life: a line, no stack trace.
        _log.warning("reconcile failed: %s", error, extra={**_fields(key), "retry_seconds": delay})
        return "error"
    except Exception:  # noqa: BLE001 - the task boundary: one failed run must not end the worker
        delay = queue.retry(key)
        _log.exception("reconcile failed", extra={**_fields(key), "retry_seconds": delay})
        return "error"
    queue.forget(key)
    if result.requeue_after is None:
        return "success"
    queue.add_after(key, result.requeue_after)
    return "requeue_after"


def _fields(key: Key) -> dict[str, str]:
    return {"kind": key.kind, "namespace": key.namespace, "object": key.name}
