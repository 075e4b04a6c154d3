import threading
import uuid
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from testbed.runtime.inference.lookahead import LookaheadConfig
from testbed.runtime.simulator.errors import RankError, RequestError
from testbed.runtime.simulator.executor import EngineRequest, EngineResult
from testbed.runtime.simulator.fast_logits import LogitsShelf, handle_from_array, handle_to_array, take_logits
from testbed.runtime.simulator.ranks import Hello, RankHub, RankLink, shm_prefix
from testbed.runtime.simulator.wire import pack_request, pack_result, unpack_request, unpack_result

GONE = 2**22 + 1  # above the largest process id
REQUEST = EngineRequest(tokens=(1, 2), max_tokens=4, end_id=2)


@pytest.fixture
def job() -> str:
    return uuid.uuid4().hex


def hello(rank: int, prefix: str | None = None) -> Hello:
    return Hello(rank, "participant", f"prefix{rank}_" if prefix is None else prefix, GONE)


def answer(request: EngineRequest) -> EngineResult:
    if request.max_tokens < 1:
        raise RequestError("nothing to do")
    return EngineResult(tokens=(*request.tokens, 9), logits=request.draft_logits)


def attach(job: str, own: Hello) -> threading.Thread:
    worker = threading.Thread(target=lambda: RankLink.attach(job, "model", own).work(answer))
    worker.start()
    return worker


def serving(job: str, own: Hello) -> tuple[RankHub, threading.Thread]:
    hub = RankHub(job, "model", hello(0))
    worker = attach(job, own)
    hub.wait_for(frozenset({own.rank}), print)
    return hub, worker


def test_a_participant_answers_for_the_orchestrator(job: str) -> None:
    hub, worker = serving(job, hello(1))
    logits = np.ones((1, 3), dtype=np.float32)
    result = hub.run(1, replace(REQUEST, draft_logits=logits))
    hub.close()
    worker.join(timeout=10)
    assert result.tokens == (1, 2, 9)
    assert np.array_equal(result.logits if result.logits is not None else (), logits)


def test_lookahead_sizes_and_counts_cross_the_wire() -> None:
    request = replace(REQUEST, lookahead=LookaheadConfig(4, 3, 2))
    result = EngineResult(tokens=(5,), drafted=4, accepted=1, guessed=63, passes=2)
    assert (unpack_request(pack_request(request)), unpack_result(pack_result(result))) == (request, result)


def test_a_participants_refusal_reaches_the_client(job: str) -> None:
    hub, worker = serving(job, hello(1))
    with pytest.raises(RequestError, match="nothing to do"):
        hub.run(1, replace(REQUEST, max_tokens=0))
    hub.close()
    worker.join(timeout=10)


def test_a_participant_leaves_when_the_orchestrator_closes(job: str) -> None:
    hub, worker = serving(job, hello(1))
    hub.close()
    worker.join(timeout=10)
    assert not worker.is_alive()


def test_a_rank_that_was_lost_is_named(job: str) -> None:
    hub, worker = serving(job, hello(1))
    hub.close()
    worker.join(timeout=10)
    with pytest.raises(RequestError, match="rank 1 of model is gone"):
        hub.run(1, REQUEST)


def test_two_ranks_with_one_shared_memory_prefix_are_refused(job: str) -> None:
    hub = RankHub(job, "model", hello(0, "prefix_"))
    worker = attach(job, hello(1, "prefix_"))
    with pytest.raises(RankError, match="ranks 0 and 1 share the shared memory prefix 'prefix_'"):
        hub.wait_for(frozenset({1}), print)
    hub.close()
    worker.join(timeout=10)


def test_the_prefix_is_read_from_the_stubs_command_line() -> None:
    line = b"/stub\0/model.py\0prefix1_493d1c3e-bb0a-4950-b751-72d1b20c3d5b\x001048576\0"
    assert shm_prefix(line) == "prefix1_"


def test_a_target_takes_the_drafts_logits_from_the_drafts_rank(job: str) -> None:
    logits = np.arange(6, dtype=np.float32).reshape(2, 3)
    kept = LogitsShelf(job, 1).keep(EngineResult(tokens=(2, 2), logits=logits))
    taken = take_logits(job, replace(REQUEST, handle=kept.handle))
    assert kept.logits is None
    assert np.array_equal(taken.draft_logits if taken.draft_logits is not None else (), logits)


def test_logits_are_given_once(job: str) -> None:
    kept = LogitsShelf(job, 1).keep(EngineResult(tokens=(2,), logits=np.ones((1, 3), dtype=np.float32)))
    take_logits(job, replace(REQUEST, handle=kept.handle))
    with pytest.raises(RequestError, match="doesn't have the logits"):
        take_logits(job, replace(REQUEST, handle=kept.handle))


def test_overlapping_participant_ids_are_refused(job: str) -> None:
    _first = LogitsShelf(job, 1)
    with pytest.raises(RankError, match="participant of two models"):
        LogitsShelf(job, 1)


@pytest.mark.parametrize("data_type", [np.float32, np.float16])
def test_a_handle_survives_its_way_as_a_logits_tensor(job: str, data_type: type[np.floating[Any]]) -> None:
    kept = LogitsShelf(job, 3).keep(EngineResult(tokens=(2,), logits=np.ones((1, 3), dtype=np.float32)))
    assert kept.handle is not None
    assert handle_from_array(handle_to_array(kept.handle, data_type)) == kept.handle


def test_real_logits_are_no_handle() -> None:
    with pytest.raises(RequestError, match="turn speculative_decoding_fast_logits on for both"):
        handle_from_array(np.ones((1, 3), dtype=np.float32))
