"""The artifacts that a model uses: made if missing, owned while used, let go when not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact, ModelArtifactSpec
from specdec_operator.api.v1alpha1.status import ArtifactStatus
from specdec_operator.cluster.errors import AlreadyExists, Conflict, NotFound
from specdec_operator.cluster.owners import add_owner, remove_owner
from specdec_operator.cluster.resources import MODEL_ARTIFACTS
from specdec_operator.planning.keys import content_key, short
from specdec_operator.resources.artifacts import model_artifact
from specdec_operator.resources.labels import FAILED_WAYS, RETRY, SELECTOR

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.planning.acquire import ArtifactRequest
    from specdec_operator.reconcile.context import Context

_KEPT_WAYS = 256


class Usage:
    """One model's hold on its artifacts, during one reconcile."""

    def __init__(self, context: Context, model: SpeculativeModel) -> None:
        self._context = context
        self._model = model
        self._owner: JsonObject = {
            "apiVersion": model.api_version,
            "kind": model.kind,
            "metadata": {"name": model.metadata.name, "uid": model.metadata.uid},
        }
        self._used: dict[str, ArtifactStatus] = {}

    @property
    def artifacts(self) -> list[ArtifactStatus]:
        """What was asked for, as status shows it."""
        return list(self._used.values())

    async def hold(self, requests: Sequence[ArtifactRequest]) -> dict[str, ModelArtifact]:
        """Make the artifacts and own them; returned per role."""
        held = {}
        for request in requests:
            artifact = await self._hold(request)
            held[request.role] = artifact
            self._used[request.role] = ArtifactStatus(
                role=request.role,
                kind=request.spec.type,
                name=request.name,
                key=request.spec.key,
                state=artifact.status.state,
                reason=artifact.status.reason,
            )
        return held

    async def release_others(self, keep: Collection[str] = ()) -> None:
        """Let go of artifacts that this model owns and no longer uses; the last owner's leave removes one.

        Args:
            keep: Names that are kept beside those asked for.
        """
        used = {status.name for status in self._used.values()} | set(keep)
        namespace = self._model.metadata.namespace
        for document in await self._context.api.list(MODEL_ARTIFACTS, namespace=namespace, label_selector=SELECTOR):
            owners = document["metadata"].get("ownerReferences", [])
            mine = any(owner["uid"] == self._model.metadata.uid for owner in owners)
            if mine and document["metadata"]["name"] not in used:
                await self._leave(document)

    async def _hold(self, request: ArtifactRequest) -> ModelArtifact:
        document = await self._find(request.name)
        body = model_artifact(request, owner=self._model)
        if document is not None and self._is_outdated(document, request):
            if failed := () if self._retries(document) else _failed_ways(document):
                body["metadata"]["annotations"] = {FAILED_WAYS: " ".join(failed)}
            await self._delete(document)
            document = None
        if document is None:
            try:
                return ModelArtifact.model_validate(await self._context.api.create(MODEL_ARTIFACTS, body))
            except AlreadyExists:
                document = await self._get(request.name)
        return ModelArtifact.model_validate(await self._own(document))

    def _is_outdated(self, document: JsonObject, request: ArtifactRequest) -> bool:
        """Whether to start over: the same content is now to be made another way (a token, an image, a toleration).

        A retry asks for that, a changed spec of a model that used it before, and a way that has not failed yet:
        one model's wrong token stops nobody else. Models which share an artifact must not take turns.
        """
        artifact = ModelArtifact.model_validate(document)
        if artifact.status.state == "Ready" or artifact.spec == request.spec:
            return False
        if self._retries(document):
            return True
        if (failed := _failed_ways(document)) and _way(request.spec) not in failed:
            return True
        metadata = self._model.metadata
        used = any(owner.uid == metadata.uid for owner in artifact.metadata.owner_references)
        return used and self._model.status.observed_generation != metadata.generation

    def _retries(self, document: JsonObject) -> bool:
        """Whether the user asks to try again, and this artifact has not heard of it."""
        retry = self._model.metadata.annotations.get(RETRY, "")
        return bool(retry) and retry != document["metadata"].get("annotations", {}).get(RETRY)

    async def _find(self, name: str) -> JsonObject | None:
        try:
            return await self._get(name)
        except NotFound:
            return None

    async def _get(self, name: str) -> JsonObject:
        return await self._context.api.get(MODEL_ARTIFACTS, namespace=self._model.metadata.namespace, name=name)

    async def _own(self, document: JsonObject) -> JsonObject:
        document = await add_owner(self._context.api, MODEL_ARTIFACTS, document, owner=self._owner)
        retry = self._model.metadata.annotations.get(RETRY)
        metadata = document["metadata"]
        if not retry or retry == metadata.get("annotations", {}).get(RETRY):
            return document
        return await self._context.api.patch_merge(
            MODEL_ARTIFACTS,
            namespace=metadata["namespace"],
            name=metadata["name"],
            patch={"metadata": {"annotations": {RETRY: retry}, "resourceVersion": metadata["resourceVersion"]}},
        )

    async def _leave(self, document: JsonObject) -> None:
        metadata = document["metadata"]
        try:
            if len(metadata["ownerReferences"]) > 1:
                await remove_owner(self._context.api, MODEL_ARTIFACTS, document, owner_uid=self._model.metadata.uid)
                return
            # Nobody collects an object without owners; the version makes sure that nobody took it up meanwhile.
            await self._delete(document)
        except (Conflict, NotFound):
            return  # somebody else took it up or removed it; the next reconcile looks again

    async def _delete(self, document: JsonObject) -> None:
        metadata = document["metadata"]
        await self._context.api.delete(
            MODEL_ARTIFACTS,
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
        )


def _way(spec: ModelArtifactSpec) -> str:
    """The hash of how content is made."""
    return short(content_key(spec.model_dump(by_alias=True, exclude_none=True, mode="json")))


def _failed_ways(document: JsonObject) -> tuple[str, ...]:
    """The ways in which an artifact was tried in vain; none while there is hope."""
    artifact = ModelArtifact.model_validate(document)
    if artifact.status.state != "Failed" and artifact.status.reason != "SecretMissing":
        return ()
    return (*artifact.metadata.annotations.get(FAILED_WAYS, "").split(), _way(artifact.spec))[-_KEPT_WAYS:]
