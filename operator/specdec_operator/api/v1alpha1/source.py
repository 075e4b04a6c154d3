"""Where a model comes from."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.scalars import ImageReference, ObjectName, RelativePath

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
FilePattern = Annotated[str, Field(min_length=1, max_length=128, pattern=patterns.FILE_PATTERN.expression)]


class SecretKeyReference(ApiModel):
    """A key of a Secret in the model's namespace."""

    name: ObjectName
    """The Secret's name."""
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=patterns.SECRET_KEY.expression)] = "token"
    """The key inside the Secret."""


class HuggingFaceSource(ApiModel):
    """A repository on the Hugging Face hub or a hub that speaks its API."""

    repository: Annotated[
        str,
        Field(
            min_length=3,
            max_length=193,
            pattern=patterns.HUB_REPOSITORY.expression,
        ),
    ]
    """Owner and name, as in `meta-llama/Llama-3.1-8B-Instruct`."""
    revision: Annotated[str, Field(min_length=1, max_length=128, pattern=patterns.HUB_REVISION.expression)] | None = (
        None
    )
    """Branch, tag or commit. Left out, the default branch's commit is resolved once and kept (see status.pins)."""
    token_secret_ref: SecretKeyReference | None = None
    """The access token, for private and gated repositories."""
    endpoint: (
        Annotated[
            str,
            Field(
                min_length=8,
                max_length=253,
                pattern=patterns.HUB_ENDPOINT.expression,
            ),
        ]
        | None
    ) = None
    """Another hub's address. Left out, the operator's setting holds."""
    allow_plain_http: Annotated[bool, Field(alias="allowPlainHTTP")] = False
    """Send the token to an address that begins with `http://`, where everyone on the way can read it."""
    allow_patterns: Annotated[list[FilePattern], Field(max_length=32)] = []
    """Only files that one of these matches are downloaded; all files if empty."""
    ignore_patterns: Annotated[list[FilePattern], Field(max_length=32)] = []
    """Files that one of these matches are not downloaded."""


class ClaimSource(ApiModel):
    """A directory on a volume claim that already holds the model."""

    claim_name: ObjectName
    """The PersistentVolumeClaim in the model's namespace."""
    sub_path: RelativePath | None = None
    """The model's directory inside the volume; the volume's root if left out. No part may be `..`."""


class ImageSource(ApiModel):
    """An OCI image that holds the model, mounted as a volume.

    Kubernetes 1.35 and newer have image volumes by default, older ones from 1.33 by the feature gate ImageVolume.
    """

    reference: ImageReference
    """The image, with tag or digest. A tag that moves is a model that changes: prefer a digest."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls it."""
    sub_path: RelativePath | None = None
    """The model's directory inside the image; its root if left out."""


class ModelSource(ApiModel):
    """Where a model comes from: exactly one of the members."""

    hugging_face: HuggingFaceSource | None = None
    """Download from a hub, once, into the store."""
    persistent_volume_claim: ClaimSource | None = None
    """Use a directory of a volume claim as it is."""
    image: ImageSource | None = None
    """Use a directory of an image volume as it is."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression=("[has(self.huggingFace), has(self.persistentVolumeClaim), has(self.image)].exists_one(x, x)"),
            message="give exactly one source: huggingFace, persistentVolumeClaim or image",
            holds=lambda self: (
                sum(part is not None for part in (self.hugging_face, self.persistent_volume_claim, self.image)) == 1
            ),
        ),
    )
