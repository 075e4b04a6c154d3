from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from specdec_operator.pod.sources import PROGRAMS
from specdec_operator.resources.programs import (
    config_map,
    config_map_name,
    input_path,
    plain_environment,
    program_arguments,
    program_data,
    program_volume,
)


def expanded(text: str, environment: dict[str, str]) -> str:
    """What Kubernetes makes of a value: `$$` is `$`, `$(NAME)` the variable if there is one."""
    return re.sub(
        r"\$\$|\$\(([^)]*)\)",
        lambda found: "$" if found[0] == "$$" else environment.get(found[1] or "", found[0]),
        text,
    )


@given(st.text())
@example("$(HOME)")
@example("$$(HOME)")
@example("$$$(HOME)")
@example("a$$b")
@example("$")
def test_a_variable_s_value_is_literal(text: str) -> None:
    (entry,) = plain_environment({"A": text})

    assert expanded(entry["value"], {"HOME": "/root"}) == text


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_program_is_run_without_a_shell(program: str) -> None:
    assert program_arguments(program) == ["python3", "/specdec/program", program, f"/specdec/program/{program}.json"]


def test_programs_and_inputs_lie_where_they_are_looked_for() -> None:
    data = program_data({"check": "{}", "canary": "{}"})
    volume = program_volume("files", data)
    paths = {item["path"] for item in volume["configMap"]["items"]}

    assert {"__main__.py", "specdec_operator/pod/check.py", "check.json", "canary.json"} <= paths
    assert input_path("check") == "/specdec/program/check.json"


def test_every_key_is_laid_out_once() -> None:
    data = program_data(dict.fromkeys(PROGRAMS, "{}"))
    items = program_volume("files", data)["configMap"]["items"]

    assert sorted(item["key"] for item in items) == sorted(data)
    assert len({item["path"] for item in items}) == len(items)


def test_keys_are_what_a_config_map_takes() -> None:
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", key) for key in program_data(dict.fromkeys(PROGRAMS, "{}")))


def test_a_config_map_is_named_by_its_content() -> None:
    assert config_map_name("a", {"x": "1"}) == config_map_name("a", {"x": "1"}) != config_map_name("a", {"x": "2"})


def test_a_config_map_never_changes() -> None:
    made = config_map(prefix="a", namespace="b", labels={}, owner={}, data={"x": "1"})

    assert (made["immutable"], made["metadata"]["name"]) == (True, config_map_name("a", {"x": "1"}))
