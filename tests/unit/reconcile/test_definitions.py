from __future__ import annotations

import copy
from typing import Any

from specdec_operator.api.crd import object_schema
from specdec_operator.api.v1alpha1.kinds import KINDS
from specdec_operator.reconcile.definitions import PUBLISHED, Definitions, outdated_in_words

OWN = {resource.kind: object_schema(resource) for resource in KINDS}


class Server:
    """Publishes the schemas of the operator's kinds."""

    def __init__(self) -> None:
        self.schemas = copy.deepcopy(OWN)

    async def read_document(self, path: str) -> dict[str, Any]:
        assert path == PUBLISHED
        named = {
            f"dev.specdec.v1alpha1.{kind}": {**schema, "x-kubernetes-group-version-kind": [{"kind": kind}]}
            for kind, schema in self.schemas.items()
        }
        return {"components": {"schemas": named}}

    def drop(self, kind: str, part: str, field: str) -> None:
        """Serve a kind without a field."""
        del self.schemas[kind]["properties"][part]["properties"][field]


async def test_crds_of_the_same_age_lack_nothing() -> None:
    definitions = Definitions(Server())
    await definitions.look()
    assert definitions.gaps == {"SpeculativeModel": (), "ModelArtifact": ()}


async def test_an_older_crd_is_told_by_kind_and_field() -> None:
    server = Server()
    server.drop("SpeculativeModel", "spec", "suspend")
    definitions = Definitions(server)
    await definitions.look()
    assert "SpeculativeModel lacks spec.suspend" in outdated_in_words(definitions.gaps)


async def test_a_crd_that_changes_meanwhile_is_noticed() -> None:
    server = Server()
    definitions = Definitions(server)
    await definitions.look()
    server.drop("ModelArtifact", "status", "facts")
    await definitions.look()
    assert definitions.gaps["ModelArtifact"] == ("status.facts",)


async def test_a_crd_that_is_applied_again_lacks_nothing_any_more() -> None:
    server = Server()
    server.drop("SpeculativeModel", "spec", "suspend")
    definitions = Definitions(server)
    await definitions.look()
    server.schemas = copy.deepcopy(OWN)
    await definitions.look()
    assert not any(definitions.gaps.values())


async def test_kinds_that_are_not_served_yet_lack_nothing() -> None:
    class Bare:
        async def read_document(self, _path: str) -> dict[str, Any]:
            return {"components": {"schemas": {}}}

    definitions = Definitions(Bare())
    await definitions.look()
    assert not definitions.gaps


async def test_a_schema_that_is_not_published_tells_nothing() -> None:
    server = Server()
    server.schemas["SpeculativeModel"] = {"type": "object"}
    definitions = Definitions(server)
    await definitions.look()
    assert "SpeculativeModel" not in definitions.gaps


async def test_a_status_fits_an_older_crd() -> None:
    server = Server()
    server.drop("SpeculativeModel", "status", "backend")
    definitions = Definitions(server)
    await definitions.look()
    assert definitions.fitted("SpeculativeModel", {"backend": "VLLM", "replicas": 1}) == {"replicas": 1}


async def test_a_status_is_left_as_it_is_where_nothing_is_lacking() -> None:
    definitions = Definitions(Server())
    await definitions.look()
    assert definitions.fitted("SpeculativeModel", {"anything": 1}) == {"anything": 1}


def test_many_gaps_are_shortened() -> None:
    said = outdated_in_words({"SpeculativeModel": tuple(f"spec.f{number}" for number in range(9)), "ModelArtifact": ()})
    assert "spec.f4 and 4 more" in said


def test_the_remedy_is_a_command() -> None:
    said = outdated_in_words({"SpeculativeModel": ("spec.x",)})
    assert "kubectl apply --server-side -f crds/" in said
