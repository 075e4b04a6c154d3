from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.api.v1alpha1.speculation import METHODS
from specdec_operator.runtimes.methods import Gap, load_methods
from specdec_operator.runtimes.table import load_table

WORDS = load_methods()
TABLE = load_table()
BACKENDS = ("LLMAPI", "TensorRTEngine", "VLLM")


def test_every_method_has_one_entry_per_backend() -> None:
    assert sorted((pair.method, pair.backend) for pair in WORDS.pairs) == sorted(
        (method, backend) for method in METHODS for backend in BACKENDS
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_served_by_a_release_or_has_words_for_why_not(method: Any, backend: Any) -> None:
    pair = WORDS.of(method, backend)

    assert bool(TABLE.with_method(backend, method)) != bool(pair.why)


@pytest.mark.parametrize("pair", WORDS.pairs, ids=lambda pair: f"{pair.method}-{pair.backend}")
def test_a_release_that_lacks_a_method_which_others_serve_has_words_for_why(pair: Any) -> None:
    lacking = [r for r in TABLE.releases if r.support(pair.backend) and pair.method not in r.methods(pair.backend)]

    assert all(pair.why_not(release.version_for(pair.backend)) for release in lacking)


@pytest.mark.parametrize("pair", WORDS.pairs, ids=lambda pair: f"{pair.method}-{pair.backend}")
def test_what_is_named_instead_is_served(pair: Any) -> None:
    assert all(TABLE.default(other.backend, other.method) for other in pair.instead)
    assert pair.instead or not (pair.why or pair.gaps)


@pytest.mark.parametrize("pair", WORDS.pairs, ids=lambda pair: f"{pair.method}-{pair.backend}")
def test_only_a_served_method_has_a_usual_draft_length(pair: Any) -> None:
    derived = pair.method in ("Lookahead", "ReDrafter")
    served = bool(TABLE.with_method(pair.backend, pair.method))

    assert (pair.draft_tokens is not None) == (served and not derived)


@pytest.mark.parametrize(
    ("version", "holds"), [("0.9.2", False), ("0.10.1.1", True), ("0.14.1", True), ("0.15.1", False), ("0.15", False)]
)
def test_a_gap_holds_from_its_first_version_to_the_one_that_mends_it(version: str, *, holds: bool) -> None:
    assert Gap(since="0.10", below="0.15", why="a test").holds(version) is holds


def test_a_pair_or_backend_without_words_is_an_error() -> None:
    empty = WORDS.model_copy(update={"pairs": [], "backends": []})

    with pytest.raises(KeyError):
        empty.of("None", "VLLM")
    with pytest.raises(KeyError):
        empty.of_backend("VLLM")
