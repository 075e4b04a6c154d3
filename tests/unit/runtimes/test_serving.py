from __future__ import annotations

import json

import pytest

from tests.unit.specs import ALL, model, plan_of


@pytest.mark.parametrize("name", ALL)
def test_the_canary_asks_for_few_tokens(name: str) -> None:
    request = plan_of(model(ALL[name])).files.generate_request
    nested = json.loads(str(request.get("sampling_parameters", "{}")))
    asked = {request.get("max_tokens"), request.get("sampling_param_max_tokens"), nested.get("max_tokens")}

    assert asked == {8, None}


@pytest.mark.parametrize("name", ALL)
def test_a_request_tensor_holds_as_many_values_as_its_shape_says(name: str) -> None:
    for tensor in plan_of(model(ALL[name])).files.tensors:
        product = 1
        for size in tensor.shape:
            product *= size
        assert len(tensor.values) == product


@pytest.mark.parametrize("name", ALL)
def test_the_endpoint_s_model_is_in_the_repository(name: str) -> None:
    files = plan_of(model(ALL[name])).files

    assert files.endpoint_model in {template.name for template in files.templates}


@pytest.mark.parametrize("name", ALL)
def test_no_argument_is_a_shell_s(name: str) -> None:
    argv = plan_of(model(ALL[name])).files.argv

    assert not {"sh", "bash", "-c", "/bin/sh", "/bin/bash"} & set(argv)


@pytest.mark.parametrize("name", ALL)
def test_nothing_of_a_spec_is_an_argument(name: str) -> None:
    argv = " ".join(plan_of(model(ALL[name])).files.argv)

    assert "someone" not in argv
