"""ReDrafter: a recurrent drafter that searches several beams, each a guess of the next few tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from testbed.runtime.inference.arithmetic import Array, linear, sigmoid_unit
from testbed.runtime.inference.errors import ModelFilesError, PairMismatchError
from testbed.runtime.inference.layer import Weights
from testbed.runtime.inference.llama import LlamaModel, read_json
from testbed.runtime.inference.safetensors import Tensor
from testbed.runtime.inference.tree import DraftTree


@dataclass(frozen=True)
class RedrafterConfig:
    """A drafter's config.json: layers of its output network, and widths."""

    num_draft_layers: int
    hidden_size: int
    exit_dim: int
    rnn: bool

    @classmethod
    def read(cls, directory: Path) -> "RedrafterConfig":
        """Read config.json of a drafter's directory.

        Raises:
            ModelFilesError: it is missing, lacks a field, or says that the drafter is not recurrent.
        """
        file = directory / "config.json"
        fields = read_json(file)
        try:
            config = cls(fields["num_draft_layers"], fields["hidden_size"], fields["exit_dim"], fields["rnn"])
        except KeyError as error:
            raise ModelFilesError(f"{file}: lacks the field {error}") from error
        if not config.rnn:
            raise ModelFilesError(f"{file}: rnn is false; only recurrent drafters are known here")
        return config


class RedrafterModel:
    """A loaded drafter, bound to its target, whose token embedding it uses."""

    def __init__(self, config: RedrafterConfig, tensors: Mapping[str, Tensor], target: LlamaModel) -> None:
        """Take weights under the names that published drafters use.

        Raises:
            PairMismatchError: its hidden size is not the target's.
            ModelFilesError: a tensor is missing or has another shape than the configuration says.
        """
        width, inner = config.hidden_size, config.exit_dim
        if width != target.config.hidden_size:
            raise PairMismatchError(
                f"the drafter's hidden_size is {width}, the target's {target.config.hidden_size};"
                " use a drafter of this target"
            )
        weights = Weights(tensors)
        self.target = target
        self._project = weights.linear("input_proj.weight", width * 2, inner) if inner != width * 2 else None
        self._fed = (weights.linear("rnn_u.weight", width, width), weights.vector("rnn_u.bias", width))
        self._kept = weights.linear("rnn_w.weight", width, width)
        names = [f"lm_heads.{layer}.linear" for layer in range(config.num_draft_layers)]
        self._blocks = [
            (weights.linear(f"{name}.weight", inner, inner), weights.vector(f"{name}.bias", inner)) for name in names
        ]
        output = f"lm_heads.{config.num_draft_layers}.weight"
        self._output = weights.linear(output, inner, target.config.vocab_size)

    def scores(self, states: Array, hidden: Array) -> Array:
        """Return log-probabilities [n, vocabulary] of the next token, from recurrent states and hidden states."""
        inner = np.concatenate((states, hidden), axis=-1)
        if self._project is not None:
            inner = linear(inner, self._project)
        for weight, bias in self._blocks:
            inner = inner + sigmoid_unit(linear(inner, weight) + bias)
        logits = linear(inner, self._output)
        shifted = logits - logits.max(axis=-1, keepdims=True)
        result: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        return result

    def advance(self, states: Array, tokens: Sequence[int]) -> Array:
        """Return the recurrent states after one more token each."""
        weight, bias = self._fed
        return sigmoid_unit(linear(states, self._kept) + linear(self.target.embed(tokens), weight) + bias)


@dataclass(frozen=True)
class _Beam:
    tokens: tuple[int, ...]
    score: float
    state: Array


class RedrafterDrafter:
    """A drafter that searches so many beams of so many tokens; both are built into an engine."""

    def __init__(self, model: RedrafterModel, *, beams: int, draft_length: int) -> None:
        """Take the drafter and the search's width and depth, each at least 1."""
        self.model = model
        self.beams = beams
        self.max_path_length = draft_length

    def begin(self, target: LlamaModel) -> "RedrafterDrafter":
        """Begin a new sequence; raises PairMismatchError when the drafter was loaded for another target."""
        if target is not self.model.target:
            raise PairMismatchError("the drafter was loaded for another target; load it with this one")
        return self

    def propose(self, tokens: Sequence[int], features: Array, depth: int) -> DraftTree:
        """Search beams from the target's last hidden state; the state begins with the last token."""
        beams = [_Beam((), 0.0, self.model.target.embed(tokens[-1:]))]
        for _ in range(depth):
            beams = self._widen(beams, features[-1:])
        return DraftTree.from_paths(beam.tokens for beam in beams)

    def _widen(self, beams: Sequence[_Beam], hidden: Array) -> list[_Beam]:
        states = np.concatenate([beam.state for beam in beams])
        scores = self.model.scores(states, np.repeat(hidden, len(beams), axis=0))
        total = scores + np.asarray([[beam.score] for beam in beams], dtype=np.float32)
        best = np.argsort(-total, axis=None, kind="stable")[: self.beams]
        chosen = [divmod(int(place), total.shape[1]) for place in best]
        after = self.model.advance(states[[beam for beam, _ in chosen]], [token for _, token in chosen])
        return [
            _Beam((*beams[beam].tokens, token), float(total[beam, token]), after[number : number + 1])
            for number, (beam, token) in enumerate(chosen)
        ]
