import json
from pathlib import Path
from typing import Any

import pytest

from testbed.runtime.simulator.errors import RequestError
from testbed.runtime.simulator.openai_arguments import FrontEndArguments, parse_command_line, server_command
from testbed.runtime.simulator.openai_requests import OpenAIRequest, answer, chunk, has_chat_template, parse_request

LEAST = ["--model-repository=/models"]


def arguments(*words: str, release: str = "26.04") -> FrontEndArguments:
    return parse_command_line([*LEAST, *words], release=release)


def request(*, chat: bool = False, template: bool = False, **fields: Any) -> OpenAIRequest:
    body = json.dumps({"model": "pair", **({} if chat else {"prompt": "Hello"}), **fields}).encode()
    return parse_request(body, chat=chat, arguments=arguments(), template=template)


def test_without_kserve_front_ends_the_server_listens_on_loopback_alone() -> None:
    command = server_command(arguments(), http_port=7, metrics_port=8)
    assert {"--http-port=7", "--http-address=127.0.0.1", "--allow-grpc=false", "--metrics-port=8"} <= set(command)


def test_kserve_front_ends_have_the_ports_that_were_asked_for() -> None:
    given = arguments("--enable-kserve-frontends", "--kserve-grpc-port=8101")
    assert given.kserve == (8000, 8101)
    assert "--grpc-port=8101" in server_command(given, http_port=8000, metrics_port=8)


def test_model_control_is_passed_on() -> None:
    given = arguments("--model-control-mode=explicit", "--load-model=a", "--load-model=b")
    assert given.control == ("--model-control-mode=explicit", "--load-model=a", "--load-model=b")


def test_an_unknown_argument_ends_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments("--disable-auto-complete-config")
    assert "unrecognized arguments" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "release"),
    [
        ("--default-max-tokens=8", "25.07"),
        ("--model-control-mode=explicit", "26.03"),
        ("--openai-restricted-api=x", "25.08"),
        ("--backend=python", "26.08"),
        ("--openai-port=many", "26.08"),
    ],
)
def test_what_the_release_s_main_py_does_not_take_ends_the_process(option: str, release: str) -> None:
    with pytest.raises(SystemExit):
        arguments(option, release=release)


@pytest.mark.parametrize(("option", "release"), [("--default-max-tokens=8", "25.08"), ("--load-model=a", "26.04")])
def test_what_a_release_brings_is_taken_from_it_on(option: str, release: str) -> None:
    assert arguments(option, release=release).model_repository == "/models"


def test_vllm_is_sent_all_sampling_as_json() -> None:
    tensors = request(temperature=0, max_tokens=5).tensors("vllm")
    assert json.loads(tensors["sampling_parameters"]) == {"temperature": 0, "max_tokens": 5}


def test_an_ensemble_is_sent_nothing_that_makes_a_draft_propose() -> None:
    assert request(temperature=0).tensors("tensorrtllm") == {
        "text_input": "Hello",
        "max_tokens": 16,
        "stream": False,
        "temperature": 0,
    }


def test_a_chat_ends_in_the_last_message() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert request(chat=True, template=True, messages=messages).prompt == "Hi"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompt": ["a", "b"]}, "only single string input"),
        ({"n": 2}, "only n=1"),
        ({"best_of": 2}, "no best_of"),
        ({"max_tokens": "many"}, "not understood"),
        ({"chat": True}, "'messages'"),
        ({"chat": True, "messages": []}, "chat_template is not set"),
    ],
)
def test_what_is_not_served_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        request(**fields)


def test_a_body_that_is_not_json_is_refused() -> None:
    with pytest.raises(RequestError, match="not understood"):
        parse_request(b"{", chat=False, arguments=arguments(), template=False)


def test_tokens_are_counted_where_the_backend_counts_them() -> None:
    outputs = {"text_output": " there", "finish_reason": "stop", "num_input_tokens": 2, "num_output_tokens": 3}
    assert answer(request(), outputs)["usage"] == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}


def test_a_chats_answer_is_a_message() -> None:
    asked = request(chat=True, template=True, messages=[{"role": "user", "content": "Hi"}])
    assert answer(asked, {"text_output": " there"})["choices"][0]["message"]["content"] == " there"


def test_a_piece_says_why_it_is_the_last() -> None:
    reasons = [
        chunk(request(stream=True), {"text_output": "x", **fields})["choices"][0]["finish_reason"]
        for fields in ({}, {"finish_reason": "stop"})
    ]
    assert reasons == [None, "stop"]


def test_a_tokenizer_may_have_a_chat_template(tmp_path: Path) -> None:
    assert not has_chat_template(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    assert has_chat_template(tmp_path)
