from __future__ import annotations

import json

import pytest
import yaml

from specdec_operator.cluster.requests import Request
from specdec_operator.cluster.resources import CONFIG_MAPS


def sent(body: object) -> bytes:
    content = Request(verb="apply", method="PATCH", resource=CONFIG_MAPS, path="/", query={}, body=body).content()
    assert content is not None
    return content


@pytest.mark.parametrize(
    "text", ["plain", "ä é", "line\u2028separator", "next\u0085line", "emoji \U0001f680", "\x7f", "<&>"]
)
def test_a_body_reads_the_same_as_json_and_as_yaml(text: str) -> None:
    content = sent({"data": text})

    assert json.loads(content) == yaml.safe_load(content) == {"data": text}


def test_a_letter_beyond_the_basic_plane_is_sent_as_itself_not_as_surrogates() -> None:
    assert "\U0001f680".encode() in sent({"data": "\U0001f680"})


def test_what_go_s_encoder_escapes_is_escaped() -> None:
    assert sent({"data": "a<b && c>d"}) == rb'{"data":"a\u003cb \u0026\u0026 c\u003ed"}'


def test_half_a_character_does_not_reach_the_api_server() -> None:
    assert json.loads(sent({"data": "a\ud83db"})) == {"data": "a\ufffdb"}


def test_keys_are_sorted() -> None:
    assert sent({"b": 1, "a": 2}) == b'{"a":2,"b":1}'


def test_no_body_sends_nothing() -> None:
    assert Request(verb="get", method="GET", resource=CONFIG_MAPS, path="/", query={}).content() is None
