from __future__ import annotations

import asyncio

import pytest

from specdec_operator.cluster.errors import ServerUnavailable
from specdec_operator.reconcile.rounds import one_round


@pytest.mark.parametrize(
    ("error", "with_trace"), [(ServerUnavailable(status=503), False), (KeyError("metadata"), True)]
)
async def test_what_goes_wrong_ends_the_round_alone(
    *, error: Exception, with_trace: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        raise error

    await one_round(work, failed="the look failed")

    (record,) = caplog.records
    assert (record.getMessage().startswith("the look failed"), record.exc_info is not None) == (True, with_trace)


async def test_a_cancelled_round_is_cancelled() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await one_round(work, failed="the look failed")
