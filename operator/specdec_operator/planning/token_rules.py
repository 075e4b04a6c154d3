"""Access tokens of hubs: they go over plain HTTP only where the spec asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.planning.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.source import HuggingFaceSource
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec


def token_refusals(spec: SpeculativeModelSpec, configuration: OperatorConfiguration) -> list[Refusal]:
    """Tokens that everyone between the cluster and the hub could read."""
    return [
        Refusal(
            reason="TokenInPlainText",
            path=f"{path}.tokenSecretRef",
            message=f"the hub's address is {endpoint}, and over plain HTTP everyone on the way can read the token: "
            "name an https:// address in endpoint or in the operator's huggingFaceEndpoint, remove the token, or set "
            "allowPlainHTTP: true on a network that you trust",
        )
        for path, source in _hubs(spec)
        if source.token_secret_ref and not source.allow_plain_http
        if (endpoint := source.endpoint or configuration.hugging_face_endpoint).startswith("http://")
    ]


def _hubs(spec: SpeculativeModelSpec) -> Iterator[tuple[str, HuggingFaceSource]]:
    for role, model in (("target", spec.target), ("draft", spec.draft)):
        if model is None:
            continue
        if model.source.hugging_face:
            yield f"spec.{role}.source.huggingFace", model.source.hugging_face
        calibration = model.quantization.calibration if model.quantization else None
        if calibration and calibration.source and calibration.source.hugging_face:
            yield f"spec.{role}.quantization.calibration.source.huggingFace", calibration.source.hugging_face
