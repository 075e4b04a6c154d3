"""What an engine carries besides its model to draft by itself: heads or a drafter, converted into the checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from testbed.runtime.inference.llama import LlamaConfig
from testbed.runtime.inference.redrafter import RedrafterConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from testbed.runtime.inference.safetensors import Tensor

DRAFTER_PREFIX: Final = "drafter."


@dataclass(frozen=True, kw_only=True)
class EagleSpeculation:
    """An EAGLE-1 head."""

    mode: ClassVar[str] = "eagle"
    architecture: ClassVar[str] = "EagleForCausalLM"

    head: LlamaConfig
    num_eagle_layers: int
    max_non_leaves_per_layer: int
    max_draft_len: int

    def document(self) -> dict[str, Any]:
        """Return the fields of `pretrained_config` that say it."""
        return {
            "architecture": self.architecture,
            "max_draft_len": self.max_draft_len,
            "num_eagle_layers": self.num_eagle_layers,
            "max_non_leaves_per_layer": self.max_non_leaves_per_layer,
            "eagle_net_config": asdict(self.head),
        }


@dataclass(frozen=True, kw_only=True)
class MedusaSpeculation:
    """MEDUSA heads."""

    mode: ClassVar[str] = "medusa"
    architecture: ClassVar[str] = "MedusaForCausalLM"

    num_medusa_heads: int
    num_medusa_layers: int
    max_draft_len: int

    def document(self) -> dict[str, Any]:
        """Return the fields of `pretrained_config` that say it."""
        return {"architecture": self.architecture, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class RedrafterSpeculation:
    """A ReDrafter drafter and the size of its search."""

    mode: ClassVar[str] = "explicit_draft_tokens"
    architecture: ClassVar[str] = "ReDrafterForLLaMALM"

    drafter: RedrafterConfig
    num_beams: int
    draft_len_per_beam: int
    greedy_search: bool

    @property
    def max_draft_len(self) -> int:
        """Draft tokens of all beams."""
        return self.num_beams * self.draft_len_per_beam

    def document(self) -> dict[str, Any]:
        """Return the fields of `pretrained_config` that say it."""
        return {
            "architecture": self.architecture,
            "base_model_architecture": "LlamaForCausalLM",
            "redrafter_num_beams": self.num_beams,
            "redrafter_draft_len_per_beam": self.draft_len_per_beam,
            "redrafter_greedy_search": self.greedy_search,
            "redrafter_num_layers": self.drafter.num_draft_layers,
            "redrafter_hidden_size": self.drafter.hidden_size,
            "redrafter_exit_dim": self.drafter.exit_dim,
            "redrafter_is_rnn": self.drafter.rnn,
            "max_draft_len": self.max_draft_len,
        }


HeadSpeculation: TypeAlias = EagleSpeculation | MedusaSpeculation | RedrafterSpeculation


def parse_speculation(document: Mapping[str, Any]) -> HeadSpeculation | None:
    """Read it from a `pretrained_config`; none for a model alone.

    Raises:
        KeyError: a field is missing.
    """
    architecture = document["architecture"]
    if architecture == EagleSpeculation.architecture:
        return EagleSpeculation(
            head=LlamaConfig(**document["eagle_net_config"]),
            num_eagle_layers=document["num_eagle_layers"],
            max_non_leaves_per_layer=document["max_non_leaves_per_layer"],
            max_draft_len=document["max_draft_len"],
        )
    if architecture == MedusaSpeculation.architecture:
        fields = ("num_medusa_heads", "num_medusa_layers", "max_draft_len")
        return MedusaSpeculation(**{name: document[name] for name in fields})
    if architecture == RedrafterSpeculation.architecture:
        return _parse_redrafter(document)
    return None


def _parse_redrafter(document: Mapping[str, Any]) -> RedrafterSpeculation:
    drafter = RedrafterConfig(
        document["redrafter_num_layers"],
        document["redrafter_hidden_size"],
        document["redrafter_exit_dim"],
        document["redrafter_is_rnn"],
    )
    return RedrafterSpeculation(
        drafter=drafter,
        num_beams=document["redrafter_num_beams"],
        draft_len_per_beam=document["redrafter_draft_len_per_beam"],
        greedy_search=document["redrafter_greedy_search"],
    )


def with_prefix(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Name a drafter's tensors so that they lie beside the model's."""
    return {DRAFTER_PREFIX + name: tensor for name, tensor in tensors.items()}


def without_prefix(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the drafter's tensors of all, under their own names."""
    return {
        name.removeprefix(DRAFTER_PREFIX): tensor for name, tensor in tensors.items() if name.startswith(DRAFTER_PREFIX)
    }
