from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.cluster.adoption import controller_of
from specdec_operator.cluster.apply import ensure_applied, ensure_created
from specdec_operator.cluster.errors import AlreadyExists, Conflict, Invalid, NameTaken, NotFound
from specdec_operator.cluster.resources import CONFIG_MAPS

Json = dict[str, Any]


def reference(uid: str, *, controller: bool = True) -> Json:
    return {"apiVersion": "v1", "kind": "Owner", "name": f"owner-{uid}", "uid": uid, "controller": controller}


def body(*, owner: str | None = "us", **metadata: Any) -> Json:
    owners = {"ownerReferences": [reference(owner)]} if owner else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "a", "name": "b", **owners, **metadata}}


class ScriptedApi:
    """Answers with the next of a script; an exception is raised."""

    field_manager = "specdec-operator"

    def __init__(self, *script: tuple[str, Json | Exception]) -> None:
        self.script = list(script)
        self.asked: list[str] = []

    async def _next(self, verb: str) -> Json:
        self.asked.append(verb)
        wanted, answer = self.script.pop(0)
        assert wanted == verb
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def create(self, *_: Any) -> Json:
        return await self._next("create")

    async def get(self, *_: Any, **__: Any) -> Json:
        return await self._next("get")

    async def apply(self, *_: Any, **__: Any) -> Json:
        return await self._next("apply")

    async def patch_json(self, *_: Any, **__: Any) -> Json:
        return await self._next("patch")


async def created(*script: tuple[str, Json | Exception], owner: str | None = "us") -> Json:
    api: Any = ScriptedApi(*script)
    return await ensure_created(api, CONFIG_MAPS, body(owner=owner), owner_uid=owner)


TAKEN = AlreadyExists(status=409)
GONE = NotFound(status=404)


async def test_a_created_object_is_returned() -> None:
    assert await created(("create", body(uid="1"))) == body(uid="1")


async def test_one_that_we_made_before_is_returned() -> None:
    assert await created(("create", TAKEN), ("get", body(uid="1"))) == body(uid="1")


async def test_one_that_vanished_between_create_and_read_is_made_anew() -> None:
    assert await created(("create", TAKEN), ("get", GONE), ("create", body(uid="2"))) == body(uid="2")


async def test_one_of_another_controller_is_named() -> None:
    with pytest.raises(NameTaken, match="ConfigMap a/b exists and is controlled by Owner/owner-them"):
        await created(("create", TAKEN), ("get", body(owner="them")))


async def test_one_without_a_controller_is_not_ours() -> None:
    with pytest.raises(NameTaken):
        await created(("create", TAKEN), ("get", body(owner=None)))


async def test_one_that_shall_have_no_controller_is_found() -> None:
    assert await created(("create", TAKEN), ("get", body(owner=None)), owner=None) == body(owner=None)


async def test_one_that_shall_have_no_controller_but_has_one_is_not_ours() -> None:
    with pytest.raises(NameTaken):
        await created(("create", TAKEN), ("get", body(owner="them")), owner=None)


def test_an_owner_that_is_not_the_controller_is_not_taken_for_it() -> None:
    live = body(owner=None, ownerReferences=[reference("a", controller=False), reference("b")])
    controller = controller_of(live)
    assert controller is not None
    assert controller["uid"] == "b"


async def test_an_object_on_its_way_out_is_left_alone() -> None:
    api: Any = ScriptedApi()
    live = body(uid="1", deletionTimestamp="2026-11-21T00:00:00Z")
    applied = await ensure_applied(api, CONFIG_MAPS, body(), owner_uid="us", live=live)
    assert (applied.changed, api.asked) == (False, [])


async def test_a_stale_strangers_object_is_not_written_to() -> None:
    api: Any = ScriptedApi()
    with pytest.raises(NameTaken):
        await ensure_applied(api, CONFIG_MAPS, body(), owner_uid="us", live=body(owner="them", uid="1"))
    assert api.asked == []


async def test_an_apply_to_another_uid_is_a_conflict() -> None:
    refused = Invalid(status=422, details={"causes": [{"field": "metadata.uid"}]})
    api: Any = ScriptedApi(("apply", refused))
    with pytest.raises(Conflict):
        await ensure_applied(api, CONFIG_MAPS, body(), owner_uid="us", live=body(uid="1"))


async def test_an_apply_that_breaks_the_schema_stays_invalid() -> None:
    refused = Invalid(status=422, details={"causes": [{"field": "spec.replicas"}]})
    api: Any = ScriptedApi(("apply", refused))
    with pytest.raises(Invalid):
        await ensure_applied(api, CONFIG_MAPS, body(), owner_uid="us", live=body(uid="1"))


def entry(operation: str) -> Json:
    fields: Json = {"f:metadata": {"f:ownerReferences": {'k:{"uid":"us"}': {}}}}
    return {"manager": "specdec-operator", "operation": operation, "apiVersion": "v1", "fieldsV1": fields}


def live(operation: str, uid: str = "1") -> Json:
    return body(uid=uid, resourceVersion="7", managedFields=[entry(operation)])


async def test_a_takeover_that_failed_its_test_is_repeated_on_the_object_as_it_is_now() -> None:
    api: Any = ScriptedApi(("patch", Invalid(status=422)), ("get", live("Update")), ("patch", live("Apply")))
    applied = await ensure_applied(api, CONFIG_MAPS, body(), owner_uid="us", live=live("Update"))
    assert (applied.object, applied.changed) == (live("Apply"), True)


async def test_a_takeover_of_an_object_that_was_replaced_is_a_conflict() -> None:
    api: Any = ScriptedApi(("patch", Invalid(status=422)), ("get", live("Update", uid="2")))
    with pytest.raises(Conflict, match="was replaced by another of its name"):
        await ensure_applied(api, CONFIG_MAPS, body(), owner_uid="us", live=live("Update"))


async def test_nothing_is_sent_when_nothing_would_change() -> None:
    api: Any = ScriptedApi()
    applied = await ensure_applied(api, CONFIG_MAPS, body(), owner_uid="us", live=live("Apply"))
    assert (applied.changed, api.asked) == (False, [])
