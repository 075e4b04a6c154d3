from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.cluster.foreign import restorations

Json = dict[str, Any]
CONTAINERS = ("spec", "template", "spec", "containers")
OURS: Json = {
    "name": "server",
    "args": ["serve"],
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "ports": [{"name": "http", "containerPort": 8000}],
}


def deployment(*containers: Json, **managed: Json) -> Json:
    """A Deployment; each manager's fields are those of the containers, by their names."""
    entries = [
        {"manager": manager, "operation": "Update", "fieldsV1": _fields(fields)} for manager, fields in managed.items()
    ]
    return {
        "metadata": {"managedFields": entries},
        "spec": {"template": {"spec": {"containers": list(containers)}}},
    }


def _fields(by_container: Json) -> Json:
    fields: Json = {f'k:{{"name":"{name}"}}': value for name, value in by_container.items()}
    for step in reversed(CONTAINERS):
        fields = {f"f:{step}": fields}
    return fields


def found(live: Json) -> list[str]:
    changes = restorations(live, desired=deployment(OURS), manager="us", lists=[CONTAINERS])
    assert all(change.get("value") == OURS.get(change["path"].rpartition("/")[2]) for change in changes)
    return [f"{change['op']} {change['path'].removeprefix(PREFIX)}" for change in changes]


PREFIX = "/spec/template/spec/containers"


@pytest.mark.parametrize(
    ("added", "fields", "paths"),
    [
        ({"command": ["sh"]}, {"f:command": {}}, ["remove /0/command"]),
        ({"workingDir": "/tmp"}, {"f:workingDir": {}}, ["remove /0/workingDir"]),  # noqa: S108 - a container's
        (
            {"lifecycle": {"preStop": {"exec": {"command": ["sh"]}}}},
            {"f:lifecycle": {".": {}, "f:preStop": {".": {}, "f:exec": {".": {}, "f:command": {}}}}},
            ["remove /0/lifecycle"],
        ),
        (
            {"env": [{"name": "X", "value": "1"}, *OURS["env"], {"name": "Y", "value": "1"}]},
            {"f:env": {name: {".": {}, "f:name": {}, "f:value": {}} for name in ('k:{"name":"X"}', 'k:{"name":"Y"}')}},
            ["replace /0/env"],
        ),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/models"}]},
            {"f:volumeMounts": {".": {}, 'k:{"mountPath":"/models"}': {".": {}, "f:mountPath": {}, "f:name": {}}}},
            ["remove /0/volumeMounts"],
        ),
        (
            {"env": [{"name": "A", "value": "1", "valueFrom": {"x": 1}}, OURS["env"][1]]},
            {"f:env": {'k:{"name":"A"}': {"f:valueFrom": {".": {}, "f:x": {}}}}},
            ["replace /0/env"],
        ),
    ],
    ids=["command", "directory", "hook", "variables", "mount", "part of a variable"],
)
def test_what_another_manager_puts_into_an_own_container_is_found(added: Json, fields: Json, paths: list[str]) -> None:
    assert found(deployment({**OURS, **added}, kubectl={"server": fields})) == paths


def test_a_sidecar_is_left_alone() -> None:
    sidecar = {"name": "mesh", "command": ["proxy"]}

    assert found(deployment(sidecar, OURS, mesh={"mesh": {".": {}, "f:name": {}, "f:command": {}}})) == []


def test_the_place_of_an_own_container_behind_a_sidecar_is_found() -> None:
    live = deployment({"name": "mesh"}, {**OURS, "command": ["sh"]}, kubectl={"server": {"f:command": {}}})

    assert found(live) == ["remove /1/command"]


def test_what_the_operator_owns_too_or_nobody_owns_stays() -> None:
    live = deployment(
        {**OURS, "imagePullPolicy": "Always"}, us={"server": {"f:args": {}}}, kubectl={"server": {"f:args": {}}}
    )

    assert found(live) == []


def test_what_is_gone_already_is_no_finding() -> None:
    assert found(deployment(OURS, kubectl={"server": {"f:command": {}}})) == []
