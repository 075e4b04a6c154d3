from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from specdec_operator.pod.inputs import AssembleInput, CheckInput, LaunchInput
from specdec_operator.pod.probe_inputs import CanaryInput, LivenessInput
from specdec_operator.resources.serving import (
    Revision,
    controller_revision,
    render_revision,
    revision_files,
    stored_revision,
)
from specdec_operator.resources.template import Templates
from specdec_operator.resources.workload import service
from tests.unit.specs import ALL, BASELINE, BASELINE_ENGINE, BASELINE_VLLM, DRAFT_TARGET, EAGLE3, model, plan_of
from tests.unit.strategies import served_specs

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.pod.document import Document

DIGEST = "ab" * 32
MIB = 1024**2
TEMPLATES = Templates()


def revision_of(made: SpeculativeModel, **options: Any) -> Revision:
    return render_revision(made, plan_of(made), assembly_digest=DIGEST, templates=TEMPLATES, **options)


def pod_of(spec: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return dict(revision_of(model(spec, **changes)).template)


def containers(pod: dict[str, Any]) -> dict[str, Any]:
    spec = pod["spec"]
    return {container["name"]: container for container in (*spec["initContainers"], *spec["containers"])}


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container["env"]}


def test_a_pod_checks_then_assembles_then_serves() -> None:
    assert list(containers(pod_of(EAGLE3))) == ["check", "assemble", "server"]


def test_the_check_asks_for_the_server_s_gpus() -> None:
    found = containers(pod_of(DRAFT_TARGET))

    for part in ("requests", "limits"):
        assert found["check"]["resources"][part]["nvidia.com/gpu"] == "5"
        assert found["server"]["resources"][part]["nvidia.com/gpu"] == "5"


def test_the_assembly_sees_no_gpu() -> None:
    found = containers(pod_of(DRAFT_TARGET))["assemble"]

    assert (environment(found)["NVIDIA_VISIBLE_DEVICES"], found["resources"]["limits"]) == ("void", {"memory": "256Mi"})


@pytest.mark.parametrize(("server", "others"), [("20m", "20m"), ("2", "100m"), ("0.05", "50m")])
def test_no_container_asks_for_more_cpu_than_the_server(server: str, others: str) -> None:
    found = containers(pod_of(BASELINE, pod={"serverResources": {"cpu": server}}))

    assert [found[name]["resources"]["requests"]["cpu"] for name in ("check", "assemble")] == [others, others]


def test_the_gpu_resource_is_the_declared_one() -> None:
    limits = containers(pod_of(BASELINE, placement={"gpu": {"resourceName": "example.com/gpu"}}))["server"]["resources"]

    assert limits["limits"]["example.com/gpu"] == "1"


def test_the_image_keeps_its_entrypoint() -> None:
    assert not any("command" in container for container in containers(pod_of(EAGLE3)).values())


@pytest.mark.parametrize("name", ALL)
def test_every_command_is_a_program_of_ours(name: str) -> None:
    pod = pod_of(ALL[name])
    server = containers(pod)["server"]
    commands = [container["args"] for container in containers(pod).values()]
    commands += [server[probe]["exec"]["command"] for probe in ("startupProbe", "livenessProbe")]

    assert [command[:2] for command in commands] == [["python3", "/specdec/program"]] * 5
    assert [command[2] for command in commands] == ["check", "assemble", "launch", "canary", "liveness"]


def test_a_pod_is_ready_when_its_endpoint_s_model_is() -> None:
    probe = containers(pod_of(DRAFT_TARGET))["server"]["readinessProbe"]

    assert probe["httpGet"] == {"path": "/v2/models/tensorrt_llm_bls/ready", "port": "http"}


def test_every_port_of_the_service_is_one_of_the_pod_s() -> None:
    cases: list[dict[str, Any]] = [{}, {"openAIFrontEnd": {}}]
    for serving in cases:
        made = model(BASELINE_VLLM, serving=serving)
        names = {port["name"] for port in containers(dict(revision_of(made).template))["server"]["ports"]}
        wanted = {port["targetPort"] for port in service(made, templates=TEMPLATES)["spec"]["ports"]}

        assert names == wanted


def test_no_port_of_a_pod_is_declared_twice() -> None:
    ports = containers(pod_of(BASELINE_VLLM, serving={"openAIFrontEnd": {}}))["server"]["ports"]

    assert len({port["containerPort"] for port in ports}) == len(ports)


@pytest.mark.parametrize(("serving", "port"), [({}, 8002), ({"openAIFrontEnd": {}}, 9000)])
def test_liveness_reads_the_metrics_where_the_process_shows_them(serving: dict[str, Any], port: int) -> None:
    revision = revision_of(model(BASELINE_VLLM, serving=serving))

    assert json.loads(revision.data["liveness.json"])["metricsPort"] == port


@pytest.mark.parametrize(("spec", "at_once"), [(BASELINE_VLLM, True), (BASELINE, True), (BASELINE_ENGINE, False)])
def test_a_server_that_hides_its_queue_is_asked_when_it_is_silent(spec: dict[str, Any], *, at_once: bool) -> None:
    revision = revision_of(model(spec))

    assert json.loads(revision.data["liveness.json"])["takesAtOnce"] is at_once


def test_every_exec_probe_may_take_longer_than_its_program() -> None:
    revision = revision_of(model(EAGLE3))
    server = containers(dict(revision.template))["server"]
    timeouts = {name: json.loads(revision.data[f"{name}.json"])["timeoutSeconds"] for name in ("canary", "liveness")}

    assert server["startupProbe"]["timeoutSeconds"] > timeouts["canary"]
    assert server["livenessProbe"]["timeoutSeconds"] > timeouts["liveness"]


def test_a_pod_may_start_for_as_long_as_declared() -> None:
    probe = containers(pod_of(EAGLE3, update={"startupMinutes": 5}))["server"]["startupProbe"]

    assert probe["periodSeconds"] * probe["failureThreshold"] == 5 * 60


def test_a_pod_is_given_longer_to_end_than_the_server_takes() -> None:
    revision = revision_of(model(DRAFT_TARGET))
    exit_timeout = next(
        int(argument.partition("=")[2])
        for argument in json.loads(revision.data["launch.json"])["argv"]
        if argument.startswith("--exit-timeout-secs=")
    )

    assert revision.template["spec"]["terminationGracePeriodSeconds"] > exit_timeout + 6 * 3


def test_our_environment_wins_over_a_spec_s() -> None:
    made = model(BASELINE, pod={"environment": [{"name": "HOME", "value": "/elsewhere"}]})
    revision = render_revision(made, plan_of(model(BASELINE)), assembly_digest=DIGEST, templates=TEMPLATES)

    assert environment(containers(dict(revision.template))["server"])["HOME"] == "/scratch/home"


def test_a_spec_s_environment_reaches_the_server_alone() -> None:
    found = containers(pod_of(BASELINE, pod={"environment": [{"name": "A", "value": "$(HOME)"}]}))

    assert environment(found["server"])["A"] == "$$(HOME)"
    assert "A" not in environment(found["check"])


def test_labels_of_a_spec_reach_the_pod_beside_ours() -> None:
    labels = pod_of(BASELINE, pod={"labels": {"team": "a"}})["metadata"]["labels"]

    assert (labels["team"], labels["specdec.dev/model"]) == ("a", "llama")


def test_a_pod_tells_its_revision() -> None:
    revision = revision_of(model(BASELINE))

    assert revision.template["metadata"]["labels"]["specdec.dev/revision"] == revision.name


def test_shared_memory_is_as_large_as_planned() -> None:
    (volume,) = [v for v in pod_of(DRAFT_TARGET)["spec"]["volumes"] if v["name"] == "shared-memory"]

    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "6Gi"}


def test_memory_is_limited_to_what_is_asked_for() -> None:
    resources = containers(pod_of(BASELINE, pod={"serverResources": {"memory": "1500M"}}))["server"]["resources"]

    assert resources["limits"]["memory"] == resources["requests"]["memory"] == "1431Mi"


@pytest.mark.parametrize("name", ALL)
def test_every_mount_has_its_volume_and_every_volume_a_mount(name: str) -> None:
    pod = pod_of(ALL[name])
    mounted = {mount["name"] for container in containers(pod).values() for mount in container["volumeMounts"]}

    assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}


@pytest.mark.parametrize("name", ALL)
def test_models_and_engines_are_only_read(name: str) -> None:
    server = containers(pod_of(ALL[name]))["server"]
    written = {mount["mountPath"] for mount in server["volumeMounts"] if not mount.get("readOnly")}

    assert written == {"/scratch", "/dev/shm"}  # noqa: S108 - the container's own


def test_one_claim_is_one_volume() -> None:
    claims = [v for v in pod_of(BASELINE_ENGINE)["spec"]["volumes"] if "persistentVolumeClaim" in v]

    assert [claim["persistentVolumeClaim"]["claimName"] for claim in claims] == ["specdec-store"]


@pytest.mark.parametrize("name", ALL)
def test_every_program_reads_its_input(name: str) -> None:
    data = revision_of(model(ALL[name])).data
    kinds: dict[str, type[Document]] = {
        "check": CheckInput,
        "assemble": AssembleInput,
        "launch": LaunchInput,
        "canary": CanaryInput,
        "liveness": LivenessInput,
    }

    for program, kind in kinds.items():
        text = data[f"{program}.json"]
        assert json.loads(kind.from_json(text).to_json()) == json.loads(text)


def test_the_pod_assembles_what_was_proven() -> None:
    revision = revision_of(model(EAGLE3))
    assembled = AssembleInput.from_json(revision.data["assemble.json"])

    assert (assembled.revision, assembled.expected_digest) == (revision.name, DIGEST)


def test_the_volume_is_the_revision_s_own_config_map() -> None:
    made = model(EAGLE3)
    revision = revision_of(made)
    files = revision_files(made, revision, uid="u")
    (volume,) = [v for v in revision.template["spec"]["volumes"] if v["name"] == "program"]

    assert volume["configMap"]["name"] == revision.config_map == files["metadata"]["name"]
    assert files["metadata"]["ownerReferences"][0]["kind"] == "ControllerRevision"


def test_a_revision_reads_back_as_it_was_kept() -> None:
    made = model(EAGLE3)
    revision = revision_of(made)
    document = json.loads(json.dumps(controller_revision(made, revision, number=4)))

    assert (stored_revision(document), document["revision"]) == (revision, 4)


@pytest.mark.parametrize("name", ALL)
def test_a_revision_fits_into_an_object(name: str) -> None:
    made = model(ALL[name])
    size = len(json.dumps(controller_revision(made, revision_of(made), number=1)))

    assert size < 256 * 1024


def test_a_restart_is_a_new_revision_of_the_same_pods() -> None:
    made = model(EAGLE3)
    first, second = revision_of(made), revision_of(made, restart="1")

    assert first.name != second.name
    assert first.template["spec"]["containers"] == second.template["spec"]["containers"]


@given(spec=served_specs())
def test_the_same_model_is_the_same_revision(spec: dict[str, Any]) -> None:
    assert revision_of(model(spec)) == revision_of(model(spec))


@given(spec=served_specs())
def test_annotations_reach_the_pod_as_they_are(spec: dict[str, Any]) -> None:
    assert pod_of(spec)["metadata"]["annotations"] == spec["pod"]["annotations"]


def test_pods_of_a_single_node_claim_stay_together() -> None:
    made = model(BASELINE)
    plan = replace(plan_of(made), single_node_claims=("specdec-store",))
    pod = render_revision(made, plan, assembly_digest=DIGEST, templates=TEMPLATES).template

    (term,) = pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = term["labelSelector"]["matchExpressions"]
    assert pod["metadata"]["labels"][expression["key"]] == "true"


def test_gpus_of_a_resource_claim_are_shared_by_check_and_server() -> None:
    pod = pod_of(BASELINE, placement__gpu={"resourceClaimTemplate": "one-gpu"})

    claims = {name: container["resources"].get("claims") for name, container in containers(pod).items()}
    assert claims == {"check": [{"name": "gpus"}], "assemble": None, "server": [{"name": "gpus"}]}
    assert pod["spec"]["resourceClaims"] == [{"name": "gpus", "resourceClaimTemplateName": "one-gpu"}]


def test_a_pod_with_a_resource_claim_asks_for_no_extended_resource() -> None:
    pod = pod_of(BASELINE, placement__gpu={"resourceClaimTemplate": "one-gpu"})

    assert set(containers(pod)["server"]["resources"]["limits"]) == {"memory"}
