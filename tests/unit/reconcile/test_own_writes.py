from __future__ import annotations

from typing import Any

from specdec_operator.cluster.apply import Applied
from specdec_operator.reconcile.own_writes import OwnWrites


def metadata(uid: str = "u", *, version: str) -> dict[str, Any]:
    return {"uid": uid, "resourceVersion": version}


def after_writing(version: str, *, changed: bool = True) -> OwnWrites:
    writes = OwnWrites()
    writes.note(Applied({"metadata": metadata(version=version)}, changed=changed))
    return writes


def test_what_was_written_is_its_own() -> None:
    assert after_writing("7").made(metadata(version="7"))


def test_what_somebody_else_wrote_since_is_not() -> None:
    assert not after_writing("7").made(metadata(version="8"))


def test_another_object_of_the_same_version_is_not() -> None:
    assert not after_writing("7").made(metadata("other", version="7"))


def test_a_status_that_needed_no_write_is_not_noted() -> None:
    assert not after_writing("7", changed=False).made(metadata(version="7"))


def test_only_the_last_write_counts() -> None:
    writes = after_writing("7")
    writes.note(Applied({"metadata": metadata(version="9")}, changed=True))
    assert not writes.made(metadata(version="7"))


def test_an_object_that_is_gone_is_forgotten() -> None:
    writes = after_writing("7")
    writes.forget(metadata(version="8"))
    assert not writes.made(metadata(version="7"))


def test_forgetting_what_was_never_written_is_no_mistake() -> None:
    OwnWrites().forget(metadata(version="1"))
