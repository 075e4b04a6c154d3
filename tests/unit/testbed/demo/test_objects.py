from __future__ import annotations

from typing import Any

from testbed.demo.objects import Objects

Json = dict[str, Any]


def made(name: str, *, owner: str = "", **fields: Any) -> Json:
    owners = [{"uid": f"uid-{owner}", "controller": True}] if owner else []
    return {"metadata": {"name": name, "uid": f"uid-{name}", "ownerReferences": owners}, **fields}


def pod(name: str, *, gpus: str, **metadata: str) -> Json:
    body = made(name, spec={"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]})
    body["metadata"] |= {"labels": {"specdec.dev/model": "pair"}, **metadata}
    return body


MODEL = made("pair", status={"currentRevision": "pair-1", "artifacts": [{"name": "engine-1", "role": "target-engine"}]})
OBJECTS = Objects(
    artifacts=[made("engine-1")],
    jobs=[made("engine-1-1", owner="engine-1"), made("other-1", owner="other")],
    revisions=[made("pair-1", owner="pair"), made("other-1", owner="other")],
    config_maps=[made("pair-1-files", owner="pair-1")],
    deployments=[made("pair-serving", owner="pair")],
    pods=[pod("pair-pod", gpus="2"), pod("going", gpus="2", deletionTimestamp="now")],
    services=[made("pair-serving", owner="pair", spec={"clusterIP": "10.0.0.7"})],
)


def test_a_tree_holds_a_models_objects_and_no_others() -> None:
    assert OBJECTS.tree(MODEL) == [
        "SpeculativeModel pair",
        "├─ ModelArtifact engine-1: target-engine ← Job engine-1-1",
        "├─ ControllerRevision pair-1 (current) → ConfigMap pair-1-files",
        "├─ Deployment pair-serving → Pod pair-pod (2 declared GPUs)",
        "└─ Service pair-serving at 10.0.0.7",
    ]


def test_an_artifact_of_several_models_is_told_as_shared() -> None:
    shared = made("engine-1")
    shared["metadata"]["ownerReferences"] = [{"uid": "a"}, {"uid": "b"}]
    tree = Objects([shared], [], [], [], [], [], []).tree(MODEL)
    assert tree[1] == "└─ ModelArtifact engine-1: target-engine (shared by 2 models) ← Job (gone)"


def test_a_model_without_objects_is_its_own_tree() -> None:
    assert Objects([], [], [], [], [], [], []).tree(made("new")) == ["SpeculativeModel new"]


def test_the_services_address_is_found_by_the_models_name() -> None:
    assert OBJECTS.service_address("pair") == "10.0.0.7"
    assert OBJECTS.service_address("other") == ""


def test_pods_that_go_are_no_serving_pods() -> None:
    assert [found["metadata"]["name"] for found in OBJECTS.serving_pods("pair")] == ["pair-pod"]
