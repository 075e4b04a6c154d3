from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specdec_operator.cluster.field_set import merged, paired, restricted
from specdec_operator.cluster.ownership import managed_entry

RECORDED = Path(__file__).parent / "recorded"

TCP_53 = 'k:{"port":53,"protocol":"TCP"}'
UDP_53 = 'k:{"port":53,"protocol":"UDP"}'


def paths(items: list[Any], fields: dict[str, Any]) -> list[str | None]:
    return [entry.path if entry else None for entry in paired(items, fields)]


def test_an_item_is_found_by_its_key_fields() -> None:
    assert paths([{"name": "b"}], {'k:{"name":"a"}': {}, 'k:{"name":"b"}': {}}) == ['k:{"name":"b"}']


def test_an_item_that_leaves_a_key_field_to_its_default_takes_what_the_exact_ones_leave() -> None:
    items = [{"port": 53}, {"port": 53, "protocol": "TCP"}]
    assert paths(items, {TCP_53: {}, UDP_53: {}}) == [UDP_53, TCP_53]


def test_an_item_of_a_set_is_found_by_its_value() -> None:
    assert paths(["b", "c"], {'v:"a"': {}, 'v:"b"': {}}) == ['v:"b"', None]


def test_an_item_that_is_no_map_has_no_key() -> None:
    assert paths(["a"], {'k:{"name":"a"}': {}}) == [None]


def test_the_node_itself_is_no_item() -> None:
    assert paths([{"name": "a"}], {".": {}}) == [None]


def test_a_union_holds_the_paths_of_both() -> None:
    union = merged({"f:a": {"f:b": {}}}, {"f:a": {"f:c": {}}, "f:d": {}})
    assert union == {"f:a": {"f:b": {}, "f:c": {}}, "f:d": {}}


def test_a_restriction_drops_what_the_body_does_not_give() -> None:
    assert restricted({"f:a": {}, "f:defaulted": {}}, {"a": 1}) == {"f:a": {}}


def test_a_restriction_keeps_the_membership_of_list_items() -> None:
    fields: dict[str, Any] = {"f:env": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}, "f:defaulted": {}}}}
    wanted: dict[str, Any] = {"f:env": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}
    assert restricted(fields, {"env": [{"name": "a"}]}) == wanted


def test_a_restriction_keeps_an_empty_map_that_the_body_gives() -> None:
    assert restricted({"f:emptyDir": {}}, {"emptyDir": {}}) == {"f:emptyDir": {}}


def test_the_restriction_of_a_recorded_create_drops_the_servers_defaults() -> None:
    recorded = json.loads((RECORDED / "created_job.json").read_text())
    entry = managed_entry(recorded["live"], manager="specdec-operator", operation="Update")
    assert entry is not None
    pod = restricted(entry["fieldsV1"], recorded["desired"])["f:spec"]["f:template"]["f:spec"]
    wanted: dict[str, Any] = {".": {}, "f:image": {}, "f:name": {}}
    assert pod == {"f:containers": {'k:{"name":"fetch"}': wanted}, "f:restartPolicy": {}}
