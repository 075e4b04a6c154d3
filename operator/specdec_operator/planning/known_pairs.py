"""What is publicly known of heads and their targets, beside what their files say."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.yaml_text import read_yaml

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.source import ModelSource

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


class KnownPairs(ApiModel):
    """The curated list."""

    heads: dict[str, Annotated[list[str], Field(min_length=1)]]
    """Targets by head, as repositories of the hub."""
    publishers: list[str]
    """Owners whose repositories hold models of their own."""
    precisions: list[str]
    """Parts of names that tell a precision or a file format."""

    def targets_of(self, head: str) -> tuple[str, ...]:
        """The targets that a head is known to be made for; empty if the head is not known."""
        found = next((targets for name, targets in self.heads.items() if name.lower() == head.lower()), [])
        return tuple(found)

    def is_same(self, one: str, other: str) -> bool:
        """Whether two names (repositories or paths) are of one model, in whatever precision."""
        return self._plain(one) == self._plain(other)

    def is_other(self, declared: str, target: str) -> bool:
        """Whether a target's repository certainly holds another model than the declared one.

        A copy or a fine-tuned descendant under somebody else's name is not certain to.
        """
        if self.is_same(declared, target) or not _REPOSITORY.fullmatch(declared) or not _REPOSITORY.fullmatch(target):
            return False
        owner = target.split("/", maxsplit=1)[0].lower()
        return owner == declared.split("/", maxsplit=1)[0].lower() or owner in {
            name.lower() for name in self.publishers
        }

    def _plain(self, name: str) -> str:
        words = re.split(r"[-_]", name.rstrip("/").split("/")[-1].lower())
        kept = [word for word in words if word not in self.precisions]
        return "-".join(kept[1:] if kept[:2] == ["meta", "llama"] else kept)


@functools.cache
def known_pairs() -> KnownPairs:
    """The list that ships with the operator."""
    text = resources.files("specdec_operator.planning").joinpath("known_pairs.yaml").read_text(encoding="utf-8")
    return KnownPairs.model_validate(read_yaml(text))


def name_of(source: ModelSource) -> str:
    """What a source calls its model: a repository of the hub, or the last part of a path; empty if it says nothing."""
    if source.hugging_face:
        return source.hugging_face.repository
    if source.persistent_volume_claim:
        return (source.persistent_volume_claim.sub_path or "").rstrip("/").split("/")[-1]
    return (source.image.sub_path or "").rstrip("/").split("/")[-1] if source.image else ""


def is_repository(source: ModelSource) -> bool:
    """Whether the name is the hub's, which nobody else can take."""
    return source.hugging_face is not None
