"""How vLLM of a release reads model.json, by what its contracts declare: what drafts, and why it would not start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.upstream.contracts import contract

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Json = dict[str, Any]
DRAFTS: Final = {
    "Eagle": "eagle",
    "Eagle3": "eagle3",
    "Medusa": "medusa",
    "DraftTarget": "draft_model",
    "NGram": "ngram",
    "MTP": "mtp",
}
_FLAT: Final = {
    "speculative_model": "model",
    "num_speculative_tokens": "num_speculative_tokens",
    "speculative_draft_tensor_parallel_size": "draft_tensor_parallel_size",
}
_HEADS: Final = {"eagle": "Eagle", "eagle3": "Eagle3"}


@dataclass(frozen=True)
class Reading:
    """A release's vLLM with the facts of the models that it is given.

    Attributes:
        says: What the release declares of speculation.
        facts: Of `target` and perhaps `draft`.
        newer: Whether the engine V1 runs.
    """

    release: str
    says: Mapping[str, Any]
    facts: Json
    newer: bool

    @classmethod
    def of(cls, release: str, facts: Json, environment: Mapping[str, str]) -> Reading:
        """The vLLM of a release's image as Triton's backend starts it."""
        (says,) = contract("vllm/speculation.yaml").of(release)
        asked = environment.get("VLLM_USE_V1") == "1"
        return cls(release, says, facts, says["engine"] == "V1" or (says["engine"] == "V0 unless asked" and asked))

    def speculation(self, model: Json) -> Json:
        """What model.json says of speculation, in the words of `speculative_config`; empty without one."""
        if self.says["spelling"] == "nested":
            return dict(model.get("speculative_config") or {})
        found = {inner: model[flat] for flat, inner in _FLAT.items() if flat in model}
        return {**found, "method": "ngram"} if found.get("model") == "[ngram]" else found

    def drafter(self, config: Json) -> str:
        """What drafts, as vLLM finds it."""
        method, model = config.get("method"), config.get("model")
        if method in self.says.get("heeded", ()) or (method == "ngram" and self.says["spelling"] == "flat"):
            return str(method)
        if model is None:
            return "mtp" if self._alone(method) else "nothing: no model is named"
        for part, name in self.says.get("paths", {}).items():
            if part in model.lower():
                return str(name)
        if model == "/models/target":
            return "mtp" if self.own_layers() else "draft_model"
        return "medusa" if self.facts["draft"].get("modelType") == "medusa" else "draft_model"

    def own_layers(self) -> bool:
        """Whether the target's class drafts with layers of its own."""
        rows = contract("vllm/architectures.yaml").up_to(self.release)
        return any(self.facts["target"]["architecture"] in row.get("ownLayers", {}) for row in rows)

    def refusals(self, model: Json) -> Iterator[str]:
        """Why vLLM would not start with model.json."""
        config = self.speculation(model)
        if not config:
            return
        found = self.drafter(config)
        if "method" in config and "values" in self.says and config["method"] not in self.says["values"]:
            yield f"method {config['method']} is unknown"
        if not self.newer and model.get("enable_chunked_prefill") and found in self.says.get("wholePrompts", ()):
            yield f"chunked prefill and {found} exclude each other"
        yield from self._splits(config, found, model["tensor_parallel_size"])
        yield from self.lacks(found, config["num_speculative_tokens"])

    def lacks(self, method: str, tokens: int) -> Iterator[str]:
        """Why the release can't draft so for these models, however it is told."""
        engine = "V1" if self.newer else "V0"
        if engine not in self.says["speculatesOn"]:
            yield f"{engine} does not speculate"
        if method in self.says.get("refused", ()) or (
            not self.newer and method in self.says.get("newerEngineAlone", ())
        ):
            yield f"{method} is refused on {engine}"
        if method == "eagle3":
            yield from self._eagle3_target()
        if method in _HEADS and self.newer:
            yield from self._head(_HEADS[method])
        if method == "mtp" and not self.own_layers():
            yield f"{self.facts['target']['architecture']} has no layers that it knows"
        layers = self.facts["target"].get("nextTokenLayers") or 1
        if method == "mtp" and tokens > layers and (self.says["rounds"] == "refused" or tokens % layers):
            yield f"{tokens} tokens of {layers} layers"

    def _alone(self, method: str | None) -> bool:
        types = self.says.get("layersAlone")
        return self.own_layers() and (method == "mtp" if types is None else self._type("target") in types)

    def _type(self, role: str) -> str:
        return str(self.facts[role].get("modelType", ""))

    def _splits(self, config: Json, found: str, target: int) -> Iterator[str]:
        own = config.get("draft_tensor_parallel_size")
        if found in ("ngram", "mtp"):
            return
        if own is not None and own not in {target if each == "target" else each for each in self.says["draftSplits"]}:
            yield f"draft_tensor_parallel_size={own}"
        used = target if own is None else own
        if found == "eagle" and not self.newer and used != 1:
            yield "EAGLE does not support TP > 1"
        if found == "draft_model" and self.newer and used != target:
            yield "draft and target must be split alike"

    def _eagle3_target(self) -> Iterator[str]:
        rows, target = contract("vllm/architectures.yaml").up_to(self.release), self.facts["target"]["architecture"]
        families = [row["eagle3Families"] for row in rows if "eagle3Families" in row]
        if not any(target in row.get("eagle3Targets", ()) for row in rows):
            yield f"{target} gives no hidden states for EAGLE-3"
        if not families or (families[-1] and not any(part in self._type("target") for part in families[-1])):
            yield f"EAGLE-3 is not for {self._type('target')}"

    def _head(self, prefix: str) -> Iterator[str]:
        head = str(self.facts["draft"]["architecture"])
        if "ForCausalLM" not in head:
            return  # a format that says of itself what it is
        named = head.startswith(prefix) or (prefix == "Eagle3" and head.endswith(prefix))
        name = head if named else f"{prefix}{head}"
        rows = contract("vllm/architectures.yaml").up_to(self.release)
        if not any(name in row.get("heads", ()) for row in rows):
            yield f"{name} is no class that it knows"
