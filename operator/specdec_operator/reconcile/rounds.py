"""The task boundary of what is done again and again: a round that fails is logged, and the next one comes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)


async def one_round(work: Callable[[], Awaitable[None]], *, failed: str) -> None:
    """Do the work once; whatever goes wrong ends this round, not the task.

    Args:
        failed: What is logged then.
    """
    try:
        await work()
    except ClusterError as error:
        # Outages are part of life: a line, no stack trace.
        _log.warning("%s: %s", failed, error)
    except Exception:  # noqa: BLE001 - the task boundary: one failed round must not end the rounds after it
        _log.exception("%s", failed)
