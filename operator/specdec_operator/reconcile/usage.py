"""The artifacts that a model uses: made if missing, owned while used, let go when not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.labels import MANAGED_BY
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact, ModelArtifactSpec
from specdec_operator.api.v1alpha1.status import ArtifactStatus
from specdec_operator.cluster.adoption import is_written_by
from specdec_operator.cluster.errors import AlreadyExists, Conflict, NotFound
from specdec_operator.cluster.owners import add_owner, remove_owner
from specdec_operator.cluster.resources import MODEL_ARTIFACTS
from specdec_operator.planning.keys import content_key, short
from specdec_operator.reconcile.context import timestamp
from specdec_operator.reconcile.halt import Halt
from specdec_operator.resources.artifacts import model_artifact
from specdec_operator.resources.labels import DOUBTED_AT, FAILED_WAYS, OPERATOR, RETRY, SELECTOR, retry_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specdec_operator.api.v1alpha1.metadata import ObjectMeta
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.planning.artifact_request import ArtifactRequest
    from specdec_operator.reconcile.context import Context
    from specdec_operator.reconcile.lost_content import Lost

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
        self._held: list[ModelArtifact] = []
        self.claims: dict[str, str] = {}
        """Uids of the claims that were looked at, by name."""

    @property
    def artifacts(self) -> list[ArtifactStatus]:
        """What was asked for, as status shows it."""
        return list(self._used.values())

    async def hold(self, requests: Sequence[ArtifactRequest]) -> dict[str, ModelArtifact]:
        """Make the artifacts and own them; returned per role."""
        held = {}
        for request in requests:
            artifact = await self._of_this_claim(await self._hold(request))
            held[request.role] = artifact
            self._held.append(artifact)
            self._used[request.role] = ArtifactStatus(
                role=request.role,
                kind=request.spec.type,
                name=request.name,
                key=request.spec.key,
                way=_way(request.spec),
                state=artifact.status.state,
                reason=artifact.status.reason,
            )
        return held

    async def _of_this_claim(self, artifact: ModelArtifact) -> ModelArtifact:
        """An artifact, which waits if it was made in another claim of the name: it is then made again."""
        status = artifact.status
        uid = self.claims.get(artifact.spec.claim_name or "", status.claim_uid)
        if status.state not in ("Ready", "Failed") or status.claim_uid in ("", uid):
            return artifact
        if artifact.metadata.annotations.get(DOUBTED_AT, "") <= status.ready_at:
            await self._change(artifact.metadata, annotations={DOUBTED_AT: timestamp(self._context.now())})
        told = f"claim {artifact.spec.claim_name} is another than the one that held it; it is made again"
        waiting = {"state": "Pending", "reason": "ContentDoubted", "message": told}
        return artifact.model_copy(update={"status": status.model_copy(update=waiting)})

    async def doubt(self, lost: Lost) -> None:
        """Have the artifacts looked at again that a pod did not find after they were last seen."""
        for artifact in self._held:
            seen = artifact.spec.type == lost.kind and artifact.status.state == "Ready"
            if seen and artifact.status.ready_at < lost.at:
                await self._change(artifact.metadata, annotations={DOUBTED_AT: lost.at})

    async def release_others(self) -> None:
        """Let go of artifacts that this model owns and no longer uses; the last owner's leave removes one."""
        used = {status.name for status in self._used.values()}
        namespace = self._model.metadata.namespace
        for document in await self._context.api.list(MODEL_ARTIFACTS, namespace=namespace, label_selector=SELECTOR):
            owners = document["metadata"].get("ownerReferences", [])
            mine = any(owner["uid"] == self._model.metadata.uid for owner in owners)
            if mine and document["metadata"]["name"] not in used:
                await self._leave(document)

    async def _hold(self, request: ArtifactRequest) -> ModelArtifact:
        document = await self._find(request.name)
        body = model_artifact(request, owner=self._model)
        if document is not None:
            _check_same(document, request, manager=self._context.api.field_manager)
        if document is not None and self._is_outdated(document, request):
            if failed := () if self._asks_again(document) else _failed_ways(document):
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

        Models that share an artifact must not take turns, nor stop each other's Jobs. So one starts over only what is
        made in its own former way, what failed in ways other than its own, or what it is asked to try again.
        """
        artifact = ModelArtifact.model_validate(document)
        if artifact.status.state == "Ready" or _way(artifact.spec) == _way(request.spec):
            return False
        if self._former_way(request.name) == _way(artifact.spec) != _way(request.spec):
            return True
        if artifact.status.state != "Running" and self._asks_again(document):
            return True
        failed = _failed_ways(document)
        return bool(failed) and _way(request.spec) not in failed

    def _former_way(self, name: str) -> str:
        return next((used.way for used in self._model.status.artifacts if used.name == name), "")

    def _asks_again(self, document: JsonObject) -> bool:
        """Whether the user asks to try again, and this artifact has not heard of it."""
        retry = self._model.metadata.annotations.get(RETRY, "")
        heard = document["metadata"].get("annotations", {}).get(retry_by(self._model.metadata.name))
        return bool(retry) and retry != heard

    async def _find(self, name: str) -> JsonObject | None:
        try:
            return await self._get(name)
        except NotFound:
            return None

    async def _get(self, name: str) -> JsonObject:
        return await self._context.api.get(MODEL_ARTIFACTS, namespace=self._model.metadata.namespace, name=name)

    async def _own(self, document: JsonObject) -> JsonObject:
        document = await add_owner(self._context.api, MODEL_ARTIFACTS, document, owner=self._owner)
        if MANAGED_BY not in (document["metadata"].get("labels") or {}):
            document = await self._change(
                ModelArtifact.model_validate(document).metadata, labels={MANAGED_BY: OPERATOR}
            )
        if not self._asks_again(document):
            return document
        asked = {retry_by(self._model.metadata.name): self._model.metadata.annotations[RETRY]}
        return await self._change(ModelArtifact.model_validate(document).metadata, annotations=asked)

    async def _change(self, metadata: ObjectMeta, **parts: dict[str, str]) -> JsonObject:
        return await self._context.api.patch_merge(
            MODEL_ARTIFACTS,
            namespace=metadata.namespace,
            name=metadata.name,
            patch={"metadata": {**parts, "resourceVersion": metadata.resource_version}},
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


def _check_same(document: JsonObject, request: ArtifactRequest, *, manager: str) -> None:
    """Names carry only a part of the key, and a stranger may have taken one.

    Raises:
        Halt: The object of that name is another artifact, or not ours.
    """
    metadata = document["metadata"]
    ours = metadata.get("labels", {}).get(MANAGED_BY) == OPERATOR or is_written_by(document, manager)
    if ours and document.get("spec", {}).get("key") == request.spec.key:
        return
    remedy = f"kubectl delete modelartifact {metadata['name']} -n {metadata['namespace']}"
    message = f"ModelArtifact {metadata['name']} is another one of that name: it is left alone. Remove it: {remedy}"
    raise Halt("Accepted", "NameConflict", message, terminal=True, requeue_after=60.0)


def _way(spec: ModelArtifactSpec) -> str:
    """The hash of how content is made; which commit a moving revision was resolved to is a matter of what, not how."""
    return short(content_key(spec.model_dump(by_alias=True, exclude_none=True, exclude={"fetch": {"revision"}})))


def _failed_ways(document: JsonObject) -> tuple[str, ...]:
    """The ways in which an artifact was tried in vain; none while there is hope."""
    artifact = ModelArtifact.model_validate(document)
    if artifact.status.state != "Failed" and artifact.status.reason != "SecretMissing":
        return ()
    return (*artifact.metadata.annotations.get(FAILED_WAYS, "").split(), _way(artifact.spec))[-_KEPT_WAYS:]
