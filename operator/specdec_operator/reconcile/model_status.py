"""What a reconcile found, as status. Ready is claimed only for what is served and proven."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.status import (
    EndpointStatus,
    ModelPlacement,
    PlacementStatus,
    SpeculativeModelStatus,
)
from specdec_operator.resources.labels import serving_name, serving_selector
from specdec_operator.runtimes.serving import GRPC_PORT, HTTP_PORT, METRICS_PORT

if TYPE_CHECKING:
    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.api.v1alpha1.status import FailedRevision, ProofStatus
    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.planning.placement import PodPlacement
    from specdec_operator.reconcile.acceptance import Verdict
    from specdec_operator.reconcile.conditions import Conditions
    from specdec_operator.reconcile.halt import Halt
    from specdec_operator.reconcile.observation import Serving
    from specdec_operator.reconcile.preparation import Preparation, Prepared
    from specdec_operator.reconcile.usage import Usage


@dataclass(kw_only=True)
class Findings:
    """What one reconcile came to know, filled as it goes."""

    usage: Usage
    preparation: Preparation
    prepared: Prepared | None = None
    serving: Serving | None = None
    proof: ProofStatus | None = None
    current_revision: str = ""
    update_revision: str = ""
    failed_revision: FailedRevision | None = None
    verdict: Verdict | None = None


def set_available(conditions: Conditions, serving: Serving) -> None:
    """Whether any pod answers, of whichever revision."""
    count = f"{serving.ready} of {serving.wanted} pod(s) ready, revision {serving.revision}"
    if serving.ready:
        conditions.set("Available", "True", "PodsReady", count)
    elif not serving.wanted:
        conditions.set("Available", "False", "NoPods", "no pod is asked for")
    elif serving.trouble:
        conditions.set("Available", "False", serving.trouble.reason, serving.trouble.message)
    else:
        conditions.set("Available", "False", "PodsStarting", count)


def set_ready(conditions: Conditions, model: SpeculativeModel, findings: Findings, halt: Halt | None) -> None:
    """Draw the sum: Ready, and Reconciling or Stalled while it is not."""
    failed = findings.failed_revision
    if model.spec.suspend and halt is None:
        _set_idle(conditions, findings, reason="Suspended", cause="spec.suspend is true")
    elif halt:
        conditions.set("Ready", "False", halt.reason, halt.message)
        _set_motion(conditions, stalled=halt.terminal, reason=halt.reason, message=halt.message)
    elif failed:
        message = f"revision {failed.name} did not come to serve: {failed.message}. {_instead(findings)}"
        conditions.set("Ready", "False", failed.reason, message)
        _set_motion(conditions, stalled=True, reason=failed.reason, message=message)
    elif findings.serving and not findings.serving.wanted:
        _set_idle(conditions, findings, reason="NoPods", cause="spec.replicas is 0")
    elif conditions.holds("Served") and conditions.holds("Available"):
        served = conditions.get("Served")
        conditions.set("Ready", "True", "Serving", served.message if served else "")
    else:
        _set_unproven(conditions, findings)


def _set_idle(conditions: Conditions, findings: Findings, *, reason: str, cause: str) -> None:
    """No pod is asked for; it is not so while one is left."""
    left = findings.serving.replicas if findings.serving else 0
    if left:
        message = f"{cause}: {left} pod(s) are still to stop"
        conditions.set("Ready", "False", "PodsStopping", message)
        _set_motion(conditions, stalled=False, reason="PodsStopping", message=message)
    else:
        conditions.set("Ready", "False", reason, f"{cause}: no pod runs, models and engines are kept")


def _set_unproven(conditions: Conditions, findings: Findings) -> None:
    served = conditions.get("Served")
    if served and served.status == "Unknown":
        conditions.set("Ready", "Unknown", served.reason, served.message)
        if served.reason == "Proving":
            _set_motion(conditions, stalled=False, reason=served.reason, message=served.message)
        return
    cause = served or conditions.get("Available")
    reason = cause.reason if cause else "Starting"
    message = cause.message if cause else f"revision {findings.update_revision} is being rolled out"
    conditions.set("Ready", "False", reason, message)
    _set_motion(conditions, stalled=False, reason=reason, message=message)


def _set_motion(conditions: Conditions, *, stalled: bool, reason: str, message: str) -> None:
    conditions.set("Stalled" if stalled else "Reconciling", "True", reason, message)


def _instead(findings: Findings) -> str:
    if findings.current_revision and findings.current_revision != (
        findings.failed_revision.name if findings.failed_revision else ""
    ):
        return f"Revision {findings.current_revision} serves instead, or returns; change the spec to go on"
    return (
        "There is no earlier revision: its pods are stopped; change the spec, or set specdec.dev/restart to try again"
    )


def render_status(
    model: SpeculativeModel, conditions: Conditions, findings: Findings, configuration: OperatorConfiguration
) -> JsonObject:
    """The whole status, as it is applied."""
    resolution = findings.preparation.resolution
    serving = findings.serving
    status = SpeculativeModelStatus(
        observed_generation=model.metadata.generation,
        conditions=conditions.in_order(),
        artifacts=findings.usage.artifacts,
        placement=_placement(resolution.placement) if resolution else model.status.placement,
        endpoint=_endpoint(model, findings, configuration),
        replicas=serving.replicas if serving else 0,
        ready_replicas=serving.ready if serving else 0,
        selector=",".join(f"{key}={value}" for key, value in serving_selector(model.metadata.name).items()),
        backend=resolution.backend if resolution else model.status.backend,
        pins=list(findings.preparation.pins),
        current_revision=findings.current_revision,
        update_revision=findings.update_revision or model.status.update_revision,
        failed_revision=findings.failed_revision,
        proof=findings.proof,
        acceptance=findings.verdict.word if findings.verdict else "",
        controller=configuration.instance,
    )
    return written(status)


def written(status: SpeculativeModelStatus) -> JsonObject:
    """A status as it is applied: empty fields are left out."""
    fields = status.model_dump(by_alias=True, exclude_none=True, mode="json")
    return {field: value for field, value in fields.items() if value not in ("", [])}


def _placement(placement: PodPlacement) -> PlacementStatus:
    return PlacementStatus(
        gpus_per_replica=placement.gpus,
        world_size=placement.world_size,
        orchestration=placement.orchestration,
        models=[
            ModelPlacement(role=model.role, devices=list(model.devices), participant_ids=list(model.participant_ids))
            for model in placement.models
        ],
    )


def _endpoint(
    model: SpeculativeModel, findings: Findings, configuration: OperatorConfiguration
) -> EndpointStatus | None:
    if findings.prepared is None:
        return model.status.endpoint
    files = findings.prepared.plan.files
    host = f"{serving_name(model.metadata.name)}.{model.metadata.namespace}.svc.{configuration.cluster_domain}"
    return EndpointStatus(
        http=f"http://{host}:{HTTP_PORT}",
        grpc=f"{host}:{GRPC_PORT}",
        metrics=f"http://{host}:{METRICS_PORT}/metrics",
        open_ai=f"http://{host}:{files.open_ai_port}/v1" if files.open_ai_port else "",
        model_name=files.endpoint_model,
        request_parameters=dict(files.request_parameters),
    )
