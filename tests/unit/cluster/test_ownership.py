from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_operator.cluster.ownership import owned_equal

RECORDED = Path(__file__).parent / "recorded"
US = "specdec-operator"
QUICK = settings(max_examples=50, deadline=None)

Json = dict[str, Any]


def recorded(name: str) -> tuple[Json, Json]:
    both = json.loads((RECORDED / f"{name}.json").read_text())
    return both["desired"], both["live"]


def container(body: Json, name: str = "triton") -> Json:
    containers: list[Json] = body["spec"]["template"]["spec"]["containers"]
    return next(each for each in containers if each["name"] == name)


def owned(desired: Json, live: Json) -> bool:
    return owned_equal(desired, live, manager=US)


@pytest.mark.parametrize("name", ["deployment", "service"])
def test_what_was_applied_is_equal(name: str) -> None:
    assert owned(*recorded(name))


def test_the_recorded_deployment_has_a_strangers_sidecar_and_label() -> None:
    _desired, live = recorded("deployment")
    assert (container(live, "mesh")["name"], live["metadata"]["labels"]["team"]) == ("mesh", "a")


def test_a_changed_leaf_is_not_equal() -> None:
    desired, live = recorded("deployment")
    container(desired)["image"] = "registry.example/triton:2"
    assert not owned(desired, live)


def test_a_new_leaf_is_not_equal() -> None:
    desired, live = recorded("deployment")
    container(desired)["workingDir"] = "/"
    assert not owned(desired, live)


def test_a_dropped_leaf_is_not_equal() -> None:
    desired, live = recorded("deployment")
    del desired["metadata"]["labels"]["role"]
    assert not owned(desired, live)


def test_a_dropped_list_item_is_not_equal() -> None:
    desired, live = recorded("deployment")
    del container(desired)["env"][0]
    assert not owned(desired, live)


def test_a_new_list_item_is_not_equal() -> None:
    desired, live = recorded("deployment")
    container(desired)["env"].append({"name": "NEW", "value": "1"})
    assert not owned(desired, live)


def test_reordered_list_items_are_not_equal() -> None:
    desired, live = recorded("deployment")
    desired["spec"]["template"]["spec"]["initContainers"].reverse()
    assert not owned(desired, live)


def test_a_changed_atomic_list_is_not_equal() -> None:
    desired, live = recorded("deployment")
    container(desired)["args"].append("--y")
    assert not owned(desired, live)


def test_a_key_field_that_was_left_to_its_default_and_is_now_given_is_not_equal() -> None:
    desired, live = recorded("service")
    desired["spec"]["ports"][0]["protocol"] = "TCP"
    assert not owned(desired, live)


def test_drift_in_live_is_not_equal() -> None:
    desired, live = recorded("service")
    live["spec"]["selector"] = {"app": "other"}
    assert not owned(desired, live)


def test_a_field_that_another_took_over_is_not_equal() -> None:
    desired, live = recorded("deployment")
    ours = next(each for each in live["metadata"]["managedFields"] if each["manager"] == US)
    del ours["fieldsV1"]["f:spec"]["f:replicas"]
    assert not owned(desired, live)


def test_what_a_create_left_is_not_owned_by_an_apply() -> None:
    assert not owned(*recorded("created_job"))


def test_an_apply_of_another_api_version_does_not_count() -> None:
    desired, live = recorded("deployment")
    desired["apiVersion"] = "apps/v2"
    assert not owned(desired, live)


def test_an_apply_of_another_manager_does_not_count() -> None:
    assert not owned_equal(*recorded("service"), manager="stranger")


def test_another_uid_is_not_equal() -> None:
    desired, live = recorded("service")
    desired["metadata"]["uid"] = "another"
    assert not owned(desired, live)


def test_the_server_s_own_metadata_plays_no_part() -> None:
    desired, live = recorded("service")
    live["metadata"] |= {"resourceVersion": "999999", "generation": 9}
    assert owned(desired, live)


def test_an_empty_list_of_keyed_items_says_nothing() -> None:
    desired, live = recorded("deployment")
    container(desired)["volumeDevices"] = []
    assert owned(desired, live)


def test_an_owned_empty_map_is_equal_whatever_others_put_into_it() -> None:
    desired, live = small({"annotations": {}}, {"annotations": {"theirs": "1"}}, {"f:annotations": {}})
    assert owned(desired, live)


def test_an_owned_zero_that_the_server_leaves_out_is_equal() -> None:
    desired, live = small({"hostNetwork": False}, {}, {"f:hostNetwork": {}})
    assert owned(desired, live)


def test_a_zero_that_we_do_not_own_is_not_equal() -> None:
    desired, live = small({"automount": False, "a": 1}, {"a": 1}, {"f:a": {}})
    assert not owned(desired, live)


def test_a_set_is_equal_beside_the_items_of_others() -> None:
    fields: Json = {"f:hosts": {'v:"a"': {}, 'v:"b"': {}}}
    desired, live = small({"hosts": ["a", "b"]}, {"hosts": ["theirs", "a", "b"]}, fields)
    assert owned(desired, live)


def test_a_dropped_item_of_a_set_is_not_equal() -> None:
    fields: Json = {"f:hosts": {'v:"a"': {}, 'v:"b"': {}}}
    desired, live = small({"hosts": ["a"]}, {"hosts": ["a", "b"]}, fields)
    assert not owned(desired, live)


def small(desired: Json, live: Json, fields: Json) -> tuple[Json, Json]:
    entry = {"manager": US, "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:spec": fields} if fields else {}}
    head = {"apiVersion": "v1", "kind": "Thing"}
    return {**head, "spec": desired}, {**head, "metadata": {"managedFields": [entry]}, "spec": live}


# The properties' schema: names in maps are fields, lists of maps are keyed by "key", other lists
# are owned as a whole.
LEAVES = (
    st.integers(1, 5) | st.text("xyz", min_size=1, max_size=2) | st.lists(st.integers(0, 3), min_size=1, max_size=3)
)
NAMES = st.sampled_from(["a", "b", "c"])


def maps_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.dictionaries(NAMES, values, min_size=1, max_size=3)


def keyed_lists_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Json]]:
    keys = st.lists(st.sampled_from("pqr"), min_size=1, max_size=3, unique=True)
    return st.tuples(keys, st.lists(maps_of(values), min_size=3, max_size=3)).map(
        lambda both: [{"key": key, **item} for key, item in zip(both[0], both[1], strict=False)]
    )


TREES = maps_of(st.recursive(LEAVES, lambda inner: maps_of(inner) | keyed_lists_of(inner), max_leaves=8))


def is_keyed(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def item_path(item: Json) -> str:
    return f"k:{json.dumps({'key': item['key']}, separators=(',', ':'))}"


def applied_fields(value: Any) -> Json:
    if isinstance(value, dict):
        return {f"f:{name}": applied_fields(child) for name, child in value.items()}
    if is_keyed(value):
        return {item_path(item): {".": {}, **applied_fields(item)} for item in value}
    return {}


def with_strangers(value: Any) -> Any:
    """Return what the server holds: ours, and fields and items that others added everywhere."""
    if isinstance(value, dict):
        return {"stranger": {"x": 1}} | {name: with_strangers(child) for name, child in value.items()}
    if is_keyed(value):
        return [{"key": "theirs"}, *(with_strangers(item) for item in value), {"key": "last"}]
    return value


def leaf_places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        named = [leaf_places(child, (*place, name)) for name, child in value.items() if name != "key"]
        return [found for places in named for found in places]
    if is_keyed(value):
        return [found for index, item in enumerate(value) for found in leaf_places(item, (*place, index))]
    return [place]


def at(value: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


@QUICK
@given(TREES)
def test_what_was_applied_is_equal_beside_whatever_strangers_add(tree: Json) -> None:
    assert owned(*small(tree, with_strangers(tree), applied_fields(tree)))


@QUICK
@given(TREES, st.data())
def test_any_changed_leaf_is_seen(tree: Json, data: st.DataObject) -> None:
    desired = copy.deepcopy(tree)
    place = data.draw(st.sampled_from(leaf_places(desired)))
    at(desired, place[:-1])[place[-1]] = "changed"
    assert not owned(*small(desired, with_strangers(tree), applied_fields(tree)))


@QUICK
@given(TREES, st.data())
def test_any_dropped_leaf_is_seen(tree: Json, data: st.DataObject) -> None:
    desired = copy.deepcopy(tree)
    place = data.draw(st.sampled_from(leaf_places(desired)))
    del at(desired, place[:-1])[place[-1]]
    assert not owned(*small(desired, with_strangers(tree), applied_fields(tree)))


@QUICK
@given(TREES, st.data())
def test_any_new_leaf_is_seen(tree: Json, data: st.DataObject) -> None:
    desired = copy.deepcopy(tree)
    place = data.draw(st.sampled_from(leaf_places(desired)))
    at(desired, place[:-1])["added"] = 1
    assert not owned(*small(desired, with_strangers(tree), applied_fields(tree)))


@QUICK
@given(TREES, st.data())
def test_any_leaf_that_we_no_longer_own_is_seen(tree: Json, data: st.DataObject) -> None:
    fields = applied_fields(tree)
    place = data.draw(st.sampled_from(leaf_places(tree)))
    node, value = fields, tree
    for step in place[:-1]:
        node = node[f"f:{step}"] if isinstance(step, str) else node[item_path(value[step])]
        value = value[step]
    del node[f"f:{place[-1]}"]
    assert not owned(*small(tree, with_strangers(tree), fields))
