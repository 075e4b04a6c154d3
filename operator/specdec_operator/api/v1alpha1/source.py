"""Where a model comes from."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.scalars import ObjectName, RelativePath


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


class ClaimSource(ApiModel):
    """A directory on a volume claim that already holds the model."""

    claim_name: ObjectName
    """The PersistentVolumeClaim in the model's namespace."""
    sub_path: RelativePath | None = None
    """The model's directory inside the volume; the volume's root if left out. No part may be `..`."""


class ModelSource(ApiModel):
    """Where a model comes from: exactly one of the members."""

    hugging_face: HuggingFaceSource | None = None
    """Download from a hub, once, into the store."""
    persistent_volume_claim: ClaimSource | None = None
    """Use a directory of a volume claim as it is."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="has(self.huggingFace) != has(self.persistentVolumeClaim)",
            message="give exactly one source: huggingFace or persistentVolumeClaim",
            holds=lambda self: (self.hugging_face is None) != (self.persistent_volume_claim is None),
        ),
    )


class Parallelism(ApiModel):
    """How a model is split over GPUs."""

    tensor: Annotated[int, Field(ge=1, le=64)] = 1
    """Tensor parallelism: the number of GPUs (and MPI ranks on the engine backend) that share each layer."""


class Model(ApiModel):
    """A target or a draft model."""

    source: ModelSource
    """Where the model comes from."""
    parallelism: Parallelism = Parallelism()
    """How the model is split over GPUs."""
