"""Programs' inputs as strict JSON."""

from __future__ import annotations

import json

import pytest

from specdec_operator.pod.errors import InvalidInput
from specdec_operator.pod.inputs import AssembleInput, BuildInput, BuildStep, FetchInput, ModelTemplate
from specdec_operator.pod.probe_inputs import CanaryInput


def fetch_input() -> FetchInput:
    return FetchInput(repository="a/b", revision="main", store="/store", directory="models/x")


def test_a_document_is_read_back_as_it_was_written() -> None:
    build = BuildInput(
        model="/model",
        store="/store",
        directory="engines/x",
        steps=(BuildStep(name="build", argv=("trtllm-build", "--flag")),),
        ranks=2,
    )

    assert BuildInput.from_json(build.to_json()) == build


def test_maps_keep_their_own_keys() -> None:
    template = ModelTemplate(name="m", values={"engine_dir": "/e"}, fields={"instance_group": [{"count": 1}]})
    given = AssembleInput(output="/o", models=(template,), revision_model="m")

    assert AssembleInput.from_json(given.to_json()).models[0] == template


def test_keys_on_the_wire_are_camel_case() -> None:
    given = CanaryInput(port=1, model="m", request={"a_b": 1}, output="o", timeout_seconds=1, state_file="/s")

    assert set(json.loads(given.to_json())) == {"port", "model", "request", "output", "timeoutSeconds", "stateFile"}


def test_equal_documents_give_equal_text() -> None:
    one = ModelTemplate(name="m", values={"a": "1", "b": "2"})
    other = ModelTemplate(name="m", values={"b": "2", "a": "1"})

    assert one.to_json() == other.to_json()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"extra": 1}, "unknown keys extra"),
        ({"repository": 1}, r"input\.repository must be a string, not an integer"),
        ({"repository": None}, r"input\.repository must be a string, not null"),
    ],
)
def test_a_wrong_key_is_named(change: dict[str, object], said: str) -> None:
    text = json.dumps({**json.loads(fetch_input().to_json()), **change})

    with pytest.raises(InvalidInput, match=said):
        FetchInput.from_json(text)


def test_a_missing_key_is_named() -> None:
    with pytest.raises(InvalidInput, match="input lacks directory, revision, store"):
        FetchInput.from_json('{"repository": "a/b"}')


def test_a_key_may_be_left_out_where_there_is_a_default() -> None:
    given = json.loads(fetch_input().to_json())
    del given["endpoint"]

    assert FetchInput.from_json(json.dumps(given)).endpoint == ""


def test_an_element_of_a_list_is_named_by_its_index() -> None:
    text = '{"model":"/m","store":"/s","directory":"d","ranks":1,"steps":[{"name":"a","argv":["x", 2]}]}'

    with pytest.raises(InvalidInput, match=r"input\.steps\[0\]\.argv\[1\] must be a string"):
        BuildInput.from_json(text)


def test_true_is_no_integer() -> None:
    text = '{"model":"/m","store":"/s","directory":"d","ranks":true,"steps":[]}'

    with pytest.raises(InvalidInput, match=r"input\.ranks must be an integer, not true or false"):
        BuildInput.from_json(text)


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not JSON"):
        FetchInput.from_json("{")
