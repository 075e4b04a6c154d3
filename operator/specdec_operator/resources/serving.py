"""The serving side of a model: what its pods read, and the ControllerRevision that keeps it with their template."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specdec_operator.planning.keys import short
from specdec_operator.planning.plan import revision_key
from specdec_operator.pod.inputs import LaunchInput
from specdec_operator.pod.probe_inputs import CanaryInput, LivenessInput
from specdec_operator.resources.labels import model_labels, owner_reference
from specdec_operator.resources.pod_template import pod_template
from specdec_operator.resources.programs import config_map, config_map_name, program_data
from specdec_operator.runtimes.environment import SCRATCH
from specdec_operator.runtimes.serving import HTTP_PORT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.planning.plan import ServingPlan
    from specdec_operator.resources.template import JsonObject, Templates

_CANARY_TIMEOUT_SECONDS = 45
_STUCK_SECONDS = 300


@dataclass(frozen=True, kw_only=True)
class Revision:
    """One rendered serving side.

    Attributes:
        name: Named by the plan's hash; equal plans are one revision.
        template: The pod template.
        data: The ConfigMap that the pods read: programs and their inputs.
    """

    name: str
    template: JsonObject
    data: Mapping[str, str]

    @property
    def config_map(self) -> str:
        """The name of the ConfigMap."""
        return config_map_name(self.name, self.data)


def render_revision(
    model: SpeculativeModel, plan: ServingPlan, *, assembly_digest: str, templates: Templates, restart: str = ""
) -> Revision:
    """Render the serving side of a plan.

    Args:
        assembly_digest: What the image made of the model repository, from the dry assembly.
        restart: The value of the annotation `specdec.dev/restart`.
    """
    key = revision_key(model.spec, plan, assembly_digest=assembly_digest, restart=restart)
    name = f"{model.metadata.name}-{short(key)}"
    data = program_data(_inputs(plan, revision=name, assembly_digest=assembly_digest))
    template = pod_template(model, plan, revision=name, data=data, templates=templates)
    return Revision(name=name, template=template, data=data)


def controller_revision(model: SpeculativeModel, revision: Revision, *, number: int) -> JsonObject:
    """The object that keeps a revision, so that a newer renderer rolls no pod and a return needs no rendering."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revision.name,
            "namespace": model.metadata.namespace,
            "labels": model_labels(model.metadata.name, "revision"),
            "ownerReferences": [owner_reference("SpeculativeModel", model.metadata)],
        },
        "revision": number,
        "data": {"template": revision.template, "files": dict(revision.data)},
    }


def revision_files(model: SpeculativeModel, revision: Revision, *, uid: str) -> JsonObject:
    """The ConfigMap that a revision's pods read.

    Args:
        uid: Of the ControllerRevision, which owns it.
    """
    kept = model.metadata.model_copy(update={"name": revision.name, "uid": uid})
    return config_map(
        prefix=revision.name,
        namespace=model.metadata.namespace,
        labels=model_labels(model.metadata.name, "revision"),
        owner=owner_reference("ControllerRevision", kept, api_version="apps/v1"),
        data=revision.data,
    )


def stored_revision(document: JsonObject) -> Revision:
    """Read a ControllerRevision back."""
    data = document["data"]
    return Revision(name=document["metadata"]["name"], template=data["template"], data=data["files"])


def _inputs(plan: ServingPlan, *, revision: str, assembly_digest: str) -> dict[str, str]:
    files = plan.files
    request = files.generate_request
    return {
        "check": plan.check.to_json(),
        "assemble": replace(plan.assembled, revision=revision, expected_digest=assembly_digest).to_json(),
        "launch": LaunchInput(
            argv=files.argv,
            environment=dict(files.environment),
            tensorrt_llm_version=plan.check.tensorrt_llm_version,
            engines=plan.check.engines,
            model_directories=plan.check.model_directories,
        ).to_json(),
        "canary": CanaryInput(
            port=HTTP_PORT,
            model=files.endpoint_model,
            request=request,
            output=files.output,
            timeout_seconds=_CANARY_TIMEOUT_SECONDS,
            state_file=f"{SCRATCH}/canary",
        ).to_json(),
        "liveness": LivenessInput(
            port=HTTP_PORT,
            metrics_port=files.metrics_port,
            model=files.endpoint_model,
            request=request,
            output=files.output,
            timeout_seconds=30,
            stuck_seconds=_STUCK_SECONDS,
            state_file=f"{SCRATCH}/liveness",
            takes_at_once=files.takes_at_once,
        ).to_json(),
    }
