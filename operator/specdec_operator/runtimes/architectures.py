"""Which architectures a version of a runtime knows for a method: targets that it drafts for, heads that it drafts with.

The lists are `architectures.yaml`. A method, a backend and a role that no list speaks of take every architecture.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1.runtime import Backend
from specdec_operator.api.v1alpha1.speculation import Method
from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.runtimes.release import Version
from specdec_operator.runtimes.versions import at_least, numbers

_MODEL_CLASS = "ForCausalLM"
"""Heads of other formats, as the speculators library writes them, name no class of their target's family."""
Name = Annotated[str, Field(min_length=1, max_length=128)]


class Families(ApiModel):
    """The families that a runtime takes from a version on."""

    since: Version
    """The first version."""
    parts: list[Name] | None = None
    """Parts of `model_type`; None for every family."""


class KnownArchitectures(ApiModel):
    """What the versions of a runtime know for a method."""

    backend: Backend
    """Where."""
    method: Method
    """Which method."""
    role: Literal["target", "draft"]
    """Whose architecture it is."""
    since: Version
    """The first version that looks at it."""
    newest: Version
    """The newest version that was read; newer ones are left to judge by themselves."""
    prefix: str = ""
    """What a head's class adds before an architecture that does not name the method."""
    families: list[Families] = []
    """The families among them, oldest version first; all of them if empty."""
    names: dict[Version, Annotated[list[Name], Field(min_length=1)]]
    """Classes by the version that brought them, oldest first."""
    once_until: dict[Name, Version] = {}
    """By architecture, the first version that runs its next-token layers more than once per step."""

    def name_of(self, architecture: str) -> str:
        """The class that a model's architecture stands for."""
        named = architecture.startswith(self.prefix) or architecture.endswith(self.prefix)
        return architecture if named else f"{self.prefix}{architecture}"

    def knows(self, architecture: str, model_type: str, *, version: str) -> bool:
        """Whether a version knows an architecture of a family; an empty family is not looked at."""
        judged = numbers(self.since) <= numbers(version) <= numbers(self.newest)
        if not judged or (self.role == "draft" and _MODEL_CLASS not in architecture):
            return True
        rows = [row for row in self.families if at_least(version, row.since)]
        parts = rows[-1].parts if rows else None
        if parts is not None and model_type and not any(part in model_type for part in parts):
            return False
        name = self.name_of(architecture)
        return any(name in names and at_least(version, since) for since, names in self.names.items())

    def first(self, architecture: str, model_type: str) -> str:
        """The first version that looks and knows an architecture of a family; empty if none does."""
        versions = sorted({self.since, *self.names, *(row.since for row in self.families)}, key=numbers)
        return next((v for v in versions if self.knows(architecture, model_type, version=v)), "")

    def runs_once(self, architecture: str, *, version: str) -> bool:
        """Whether a version runs an architecture's next-token layers once per step and no more."""
        until = self.once_until.get(architecture)
        return until is not None and not at_least(version, until)


class Lists(ApiModel):
    """All lists."""

    lists: list[KnownArchitectures]
    """One per backend, method and role."""


def known_architectures(backend: Backend, method: Method) -> list[KnownArchitectures]:
    """The lists that speak of a method on a backend."""
    return [known for known in all_architectures() if (known.backend, known.method) == (backend, method)]


@functools.cache
def all_architectures() -> tuple[KnownArchitectures, ...]:
    """Every list."""
    text = resources.files("specdec_operator.runtimes").joinpath("architectures.yaml").read_text(encoding="utf-8")
    return tuple(Lists.model_validate(read_yaml(text)).lists)
