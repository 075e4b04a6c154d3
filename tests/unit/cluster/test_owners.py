from __future__ import annotations

from typing import Any

from specdec_operator.cluster.owners import add_owner, live_owner_reference, remove_owner
from specdec_operator.cluster.resources import MODEL_ARTIFACTS

Json = dict[str, Any]


def model(uid: str) -> Json:
    return {
        "apiVersion": "specdec.dev/v1alpha1",
        "kind": "SpeculativeModel",
        "metadata": {"name": f"m-{uid}", "uid": uid},
    }


def artifact(*uids: str) -> Json:
    references = [live_owner_reference(model(uid)) for uid in uids]
    return {"metadata": {"namespace": "a", "name": "b", "resourceVersion": "7", "ownerReferences": references}}


class PatchedApi:
    def __init__(self) -> None:
        self.operations: list[list[Json]] = []

    async def patch_json(self, *_: Any, operations: list[Json], **__: Any) -> Json:
        self.operations.append(operations)
        return {}

    def owners(self) -> list[str]:
        return [reference["uid"] for reference in self.operations[0][0]["value"]]


async def test_an_owner_is_added_beside_the_others() -> None:
    api: Any = PatchedApi()
    await add_owner(api, MODEL_ARTIFACTS, artifact("x"), owner=model("y"))
    assert api.owners() == ["x", "y"]


async def test_an_owner_that_is_there_is_not_written_again() -> None:
    api: Any = PatchedApi()
    await add_owner(api, MODEL_ARTIFACTS, artifact("x"), owner=model("x"))
    assert api.operations == []


async def test_an_owner_is_removed_and_the_others_stay() -> None:
    api: Any = PatchedApi()
    await remove_owner(api, MODEL_ARTIFACTS, artifact("x", "y"), owner_uid="x")
    assert api.owners() == ["y"]


async def test_an_owner_that_is_not_there_is_not_removed() -> None:
    api: Any = PatchedApi()
    await remove_owner(api, MODEL_ARTIFACTS, artifact("x"), owner_uid="y")
    assert api.operations == []


async def test_a_change_of_owners_rests_on_the_version_that_was_read() -> None:
    api: Any = PatchedApi()
    await add_owner(api, MODEL_ARTIFACTS, artifact(), owner=model("y"))
    assert api.operations[0][1] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}
