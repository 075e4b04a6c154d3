from __future__ import annotations

from specdec_operator.planning.refusal import Refusal, Refused


def test_a_refusal_says_where_and_what() -> None:
    assert str(Refusal(reason="A", path="spec.draft", message="name another")) == "spec.draft: name another"


def test_all_that_is_wrong_is_said_at_once() -> None:
    first, second = (Refusal(reason="A", path=path, message="wrong") for path in ("spec.a", "spec.b"))

    assert str(Refused((first, second))) == "spec.a: wrong; spec.b: wrong"
