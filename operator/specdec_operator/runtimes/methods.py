"""What to say of a method on a backend: its usual draft length, why releases lack it, and what to use instead.

The words are `methods.yaml`; which releases serve what is the capability table's.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1.runtime import Backend
from specdec_operator.api.v1alpha1.speculation import Method
from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.runtimes.release import Version
from specdec_operator.runtimes.versions import at_least

Words = Annotated[str, Field(max_length=256)]
"""Words that follow a colon: no capital at their beginning, no full stop at their end."""


class Gap(ApiModel):
    """Versions of a runtime that lack something."""

    since: Version | None = None
    """The first that lacks it; from the beginning if left out."""
    below: Version | None = None
    """The first that has it again; to the newest if left out."""
    why: Words
    """Why they lack it."""

    def holds(self, version: str) -> bool:
        """Whether a version is one of them."""
        return (self.since is None or at_least(version, self.since)) and (
            self.below is None or not at_least(version, self.below)
        )


class Alternative(ApiModel):
    """What to use instead."""

    method: Method
    """The method."""
    backend: Backend
    """Where."""
    how: Words = ""
    """What it takes."""


class Pair(ApiModel):
    """A method on a backend."""

    method: Method
    """The method."""
    backend: Backend
    """The backend."""
    draft_tokens: Annotated[int, Field(ge=0, le=255)] | None = None
    """How many tokens are drafted where a spec names none; none where they follow from other options."""
    why: Words = ""
    """Why no release serves it."""
    gaps: list[Gap] = []
    """Why some releases lack it."""
    instead: list[Alternative] = []
    """What to use where it is lacking, best first."""
    note: Words = ""
    """What to know where it is served."""

    def why_not(self, version: str) -> str:
        """Why a version of the runtime lacks it; empty if nothing is known."""
        return next((gap.why for gap in self.gaps if gap.holds(version)), self.why)


class BackendWords(ApiModel):
    """A backend."""

    backend: Backend
    """Which."""
    runtime: Annotated[str, Field(max_length=32)]
    """What serves inside Triton there."""
    gaps: list[Gap] = []
    """Why some releases lack it, though they have an image of the runtime."""
    without_image: Words
    """Why some releases have no image of it."""

    def why_not(self, version: str) -> str:
        """Why an image with a version of the runtime lacks the backend; empty if nothing is known."""
        return next((gap.why for gap in self.gaps if gap.holds(version)), "")


class MethodWords(ApiModel):
    """All words."""

    backends: list[BackendWords]
    """One entry per backend."""
    pairs: list[Pair]
    """One entry per method and backend."""

    def of(self, method: Method, backend: Backend) -> Pair:
        """The words for a method on a backend.

        Raises:
            KeyError: There are none.
        """
        for pair in self.pairs:
            if (pair.method, pair.backend) == (method, backend):
                return pair
        raise KeyError((method, backend))

    def of_backend(self, backend: Backend) -> BackendWords:
        """The words for a backend.

        Raises:
            KeyError: There are none.
        """
        for words in self.backends:
            if words.backend == backend:
                return words
        raise KeyError(backend)


@functools.cache
def load_methods() -> MethodWords:
    """The words that ship with the operator."""
    text = resources.files("specdec_operator.runtimes").joinpath("methods.yaml").read_text(encoding="utf-8")
    return MethodWords.model_validate(read_yaml(text))
