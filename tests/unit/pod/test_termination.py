"""The termination message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_operator.pod.termination import (
    LIMIT_BYTES,
    Failed,
    MessageCut,
    Outcome,
    Succeeded,
    decode,
    encode,
    exit_code,
)

outcomes = st.one_of(
    st.builds(Succeeded, st.dictionaries(st.text(max_size=20), st.integers() | st.text(max_size=20), max_size=5)),
    st.builds(Failed, st.from_regex(r"[A-Z][A-Za-z0-9]{0,63}", fullmatch=True), st.text(max_size=200), st.booleans()),
)


@given(outcomes)
def test_an_outcome_is_read_back_as_it_was_written(outcome: Outcome) -> None:
    assert decode(encode(outcome)) == outcome


@given(outcomes, st.data())
def test_a_cut_message_is_never_taken_for_a_whole_one(outcome: Outcome, data: st.DataObject) -> None:
    text = encode(outcome)
    kept = data.draw(st.integers(min_value=0, max_value=len(text) - 1))

    with pytest.raises(MessageCut):
        decode(text[:kept])


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"body":{}}', "Error: no space left on device"])
def test_foreign_text_is_refused(text: str) -> None:
    with pytest.raises(MessageCut):
        decode(text)


def test_a_changed_message_is_refused() -> None:
    text = encode(Failed("StoreFull", "needs 5 GiB", terminal=True))

    with pytest.raises(MessageCut, match="checksum"):
        decode(text.replace("5 GiB", "6 GiB"))


def test_a_long_failure_is_shortened_in_its_middle() -> None:
    outcome = decode(encode(Failed("EngineBuildFailed", "first " + "ü" * 9000 + " last", terminal=True)))

    assert isinstance(outcome, Failed)
    assert outcome.message.startswith("first ")
    assert outcome.message.endswith(" last")


def test_a_long_failure_fits_into_the_kubelets_limit() -> None:
    assert len(encode(Failed("EngineBuildFailed", "\n" * 9000, terminal=True)).encode()) <= LIMIT_BYTES


def test_a_result_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match="termination message holds"):
        encode(Succeeded({"text": "x" * 4000}))


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(Succeeded({}), 0), (Failed("A", "m", terminal=False), 1), (Failed("A", "m", terminal=True), 3)],
)
def test_the_exit_code_classes_the_outcome(outcome: Outcome, code: int) -> None:
    assert exit_code(outcome) == code


@pytest.mark.parametrize("reason", ["", "no word", "kind: Failed", "A" * 65, "Lösung", "Failed\n"])
def test_a_reason_that_no_condition_can_hold_is_refused(reason: str) -> None:
    with pytest.raises(MessageCut, match="unknown shape"):
        decode(encode(Failed(reason, "m", terminal=True)))


def test_a_file_name_that_is_not_utf_8_is_spelled_out() -> None:
    outcome = decode(encode(Failed("ProgramError", "no such file: \udcff.bin", terminal=True)))

    assert outcome == Failed("ProgramError", "no such file: \\udcff.bin", terminal=True)
