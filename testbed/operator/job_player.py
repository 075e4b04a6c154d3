"""What the Jobs of kwok's pods come to: kwok runs no program, so its outcome is told per namespace."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from specdec_operator.cluster.errors import ApiError, NotFound
from specdec_operator.cluster.resources import MODEL_ARTIFACTS, PODS
from specdec_operator.pod.termination import Failed, Outcome, Succeeded, encode, exit_code
from specdec_operator.resources.labels import ARTIFACT
from testbed.cluster.kwok import EXIT_CODE_ANNOTATION, TERMINATION_MESSAGE_ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specdec_operator.cluster.api import JsonObject, KubernetesApi

POLL_SECONDS = 0.25
JOB_LABEL = "batch.kubernetes.io/job-name"

LLAMA: Mapping[str, Any] = {
    "architecture": "LlamaForCausalLM",
    "vocabularySize": 512,
    "tokenizerDigest": "ab" * 32,
    "bosTokenId": 1,
    "eosTokenIds": [2],
    "layers": 4,
    "hiddenSize": 64,
    "attentionHeads": 4,
    "keyValueHeads": 2,
    "headSize": 16,
    "dataType": "float16",
    "contextLength": 4096,
    "weightBytes": 1_000_000,
}
"""Facts of a small model; a draft of the same facts fits it."""
EAGLE3_HEAD: Mapping[str, Any] = {
    **LLAMA,
    "architecture": "LlamaForCausalLMEagle3",
    "tokenizerDigest": "",
    "layers": 1,
    "draftVocabularySize": 256,
}
"""Facts of an EAGLE-3 head that fits it."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a Job's program ends.

    Attributes:
        message: its termination message.
        code: its exit code.
    """

    message: str
    code: int = 0


def ending(outcome: Outcome) -> Ending:
    """Return the ending of a program with an outcome."""
    return Ending(message=encode(outcome), code=exit_code(outcome))


def succeeds(facts: Mapping[str, Any] = LLAMA) -> Ending:
    """A fetch or inspection that found these facts; commit and content follow from them."""
    digest = hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest()
    found = {"commit": digest[:40], "contentDigest": digest, **facts}
    return ending(Succeeded({"facts": found, "reused": False}))


def fails(reason: str, message: str = "it went wrong; do something else", *, terminal: bool = True) -> Ending:
    """A program that fails and says why."""
    return ending(Failed(reason, message, terminal))


def cut(whole: Ending) -> Ending:
    """The same ending, with half of its message."""
    return replace(whole, message=whole.message[: len(whole.message) // 2])


@dataclass
class Script:
    """What the Jobs of one namespace come to.

    Attributes:
        models: Endings of a model's fetches or inspections, attempt by attempt, by repository or path in the claim;
            the last one is repeated. Models that aren't named succeed with the facts of a small Llama, or of an
            EAGLE-3 head if their name says eagle3.
        builds: Endings of engine builds; they succeed if none is named.
        prebuilt: Endings of looks at engines that somebody else built.
        verifications: Endings of the checks for engines whose build vanished.
        assemblies: Endings of dry assemblies.
        held: Programs that are still running: `models`, `builds`, `prebuilt`, `verifications`, `assemblies` or the name
            of a model.
        endings: How many Jobs ended, by Job.
    """

    models: dict[str, Sequence[Ending]] = field(default_factory=dict)
    builds: Sequence[Ending] = ()
    prebuilt: Sequence[Ending] = ()
    verifications: Sequence[Ending] = ()
    assemblies: Sequence[Ending] = ()
    held: set[str] = field(default_factory=set)
    endings: dict[str, int] = field(default_factory=dict)

    def ending(self, artifact: JsonObject, job: str) -> Ending | None:
        """Return how an artifact's Job ends; None while it is held."""
        kind, model = _kind(artifact, job), _model(artifact)
        if kind in self.held or model in self.held:
            return None
        told = self.models.get(model, ()) if kind == "models" else getattr(self, kind)
        if told:
            # Job names end with the attempt's number, or with it and "-verify".
            attempt = int(job.removesuffix("-verify").rpartition("-")[2])
            chosen: Ending = told[min(attempt, len(told)) - 1]
            return chosen
        return _success(artifact, kind, model)


class JobPlayer:
    """Ends the Jobs' programs on kwok's pods.

    Args:
        api: the API server as the administrator.
    """

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._scripts: dict[str, Script] = {}
        self._ended: set[str] = set()

    def script(self, namespace: str) -> Script:
        """Return the script of a namespace; Jobs of namespaces without one are left running."""
        return self._scripts.setdefault(namespace, Script())

    async def run(self) -> None:
        """Play until cancelled."""
        while True:
            await self._play()
            await asyncio.sleep(POLL_SECONDS)

    async def _play(self) -> None:
        try:
            pods = await self._api.list(PODS, label_selector=ARTIFACT, field_selector="status.phase=Running")
        except ApiError:
            return
        for pod in pods:
            script = self._scripts.get(pod["metadata"]["namespace"])
            if script is not None and pod["metadata"]["uid"] not in self._ended:
                await self._end(pod, script)

    async def _end(self, pod: JsonObject, script: Script) -> None:
        metadata = pod["metadata"]
        job = metadata["labels"][JOB_LABEL]
        try:
            artifact = await self._api.get(
                MODEL_ARTIFACTS, namespace=metadata["namespace"], name=metadata["labels"][ARTIFACT]
            )
            told = script.ending(artifact, job)
            if told is None:
                return
            annotations = {TERMINATION_MESSAGE_ANNOTATION: told.message, EXIT_CODE_ANNOTATION: str(told.code)}
            await self._api.patch_merge(
                PODS,
                namespace=metadata["namespace"],
                name=metadata["name"],
                patch={"metadata": {"annotations": annotations}},
            )
        except NotFound:
            return
        self._ended.add(metadata["uid"])
        script.endings[job] = script.endings.get(job, 0) + 1


def _kind(artifact: JsonObject, job: str) -> str:
    spec = artifact["spec"]
    if "build" in spec:
        return "verifications" if job.endswith("-verify") else "builds"
    if "prebuilt" in spec:
        return "prebuilt"
    return "assemblies" if "assemble" in spec else "models"


def _model(artifact: JsonObject) -> str:
    spec = artifact["spec"]
    name: str = spec["fetch"]["repository"] if "fetch" in spec else spec.get("inspect", {}).get("subPath", "")
    return name


def _success(artifact: JsonObject, kind: str, model: str) -> Ending:
    digest = hashlib.sha256(artifact["metadata"]["name"].encode()).hexdigest()
    work = artifact["spec"].get("fetch") or artifact["spec"].get("inspect") or {}
    if work.get("content") == "DataSet":
        commit = digest[:40] if "fetch" in artifact["spec"] else ""
        return ending(Succeeded({"dataSet": {"commit": commit, "contentDigest": digest}, "reused": False}))
    if kind == "models":
        return succeeds(EAGLE3_HEAD if "eagle3" in model.lower() else LLAMA)
    if kind == "prebuilt":
        return ending(Succeeded({"digest": digest, "bytes": 1, "ranks": 1}))
    if kind == "assemblies":
        return ending(Succeeded({"digest": digest, "templates": {}}))
    ranks = artifact["spec"]["build"]["ranks"]
    return ending(Succeeded({"digest": digest, "bytes": 1, "ranks": ranks, "reused": kind == "verifications"}))
