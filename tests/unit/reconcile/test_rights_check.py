from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.cluster.errors import ServerUnavailable
from specdec_operator.cluster.rights import WATCHED, own, rules
from specdec_operator.reconcile.rights_check import AT_ONCE, RightsCheck

if TYPE_CHECKING:
    from specdec_operator.cluster.api import KubernetesApi
    from specdec_operator.cluster.resources import ResourceType

INSTANCE = "specdec-system/mine"
ALL = [*rules(WATCHED), *rules(own("mine"))]


@dataclass
class Server:
    """Tells an account its rules, and whether it may do one thing."""

    granted: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    incomplete: bool = False
    allows: bool = False
    is_away: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def create(self, resource: ResourceType, body: dict[str, Any]) -> dict[str, Any]:
        spec = body.get("spec") or {}
        self.asked.append((resource.kind, spec.get("namespace", "")))
        if self.is_away:
            raise ServerUnavailable(status=503)
        if resource.kind == "SelfSubjectReview":
            return {"status": {"userInfo": {"username": "me"}}}
        if resource.kind == "SelfSubjectAccessReview":
            return {"status": {"allowed": self.allows}}
        given = self.granted.get(spec["namespace"], ALL)
        return {"status": {"resourceRules": given, "incomplete": self.incomplete}}


def check(server: Server, *namespaces: str, read_nodes: bool = False) -> RightsCheck:
    configuration = OperatorConfiguration(instance=INSTANCE, namespaces=list(namespaces), read_nodes=read_nodes)
    return RightsCheck(api=cast("KubernetesApi", server), configuration=configuration)


async def looked(server: Server, *namespaces: str, read_nodes: bool = False) -> RightsCheck:
    made = check(server, *namespaces, read_nodes=read_nodes)
    await made.look()
    return made


async def test_with_all_rights_nothing_is_missing() -> None:
    assert (await looked(Server())).missing == ()


async def test_the_right_to_list_nodes_is_optional_and_needed_where_all_namespaces_are_watched() -> None:
    (missing,) = (await looked(Server(), read_nodes=True)).missing
    assert (missing.verb, missing.resource, missing.optional) == ("list", "nodes", True)

    assert (await looked(Server(), "team-a", read_nodes=True)).missing == ()


async def test_rules_for_all_namespaces_are_asked_of_one_that_cannot_be() -> None:
    server = Server()
    await looked(server)
    assert [namespace for _kind, namespace in server.asked] == ["specdec-system", "all.namespaces"]


async def test_what_is_missing_in_a_listed_namespace_is_told_with_it() -> None:
    server = Server(granted={"b": rules(WATCHED[1:])})
    missing = (await looked(server, "a", "b")).missing
    assert {(p.namespace, p.verb, p.resource) for p in missing} == {
        ("b", verb, "speculativemodels") for verb in ("get", "list", "watch")
    }


async def test_without_its_lease_it_cannot_lead() -> None:
    server = Server(granted={"specdec-system": rules(WATCHED)})
    assert not (await looked(server)).can_lead


async def test_rights_that_are_missing_elsewhere_do_not_keep_it_from_leading() -> None:
    assert (await looked(Server(granted={"a": []}), "a")).can_lead


@pytest.mark.parametrize(("allows", "told"), [(True, False), (False, True)])
async def test_rules_that_are_not_told_whole_are_asked_for_one_by_one(
    allows: bool,  # noqa: FBT001 - a case
    told: bool,  # noqa: FBT001 - a case
) -> None:
    server = Server(granted={"a": []}, incomplete=True, allows=allows)
    assert bool((await looked(server, "a")).missing) == told


async def test_whole_rules_need_no_further_question() -> None:
    server = Server(granted={"a": []})
    await looked(server, "a")
    assert "SelfSubjectAccessReview" not in {kind for kind, _ in server.asked}


async def test_an_outage_says_nothing_about_rights() -> None:
    server = Server(granted={"a": []})
    made = await looked(server, "a")
    server.is_away = True
    before = made.missing
    await made.look()
    assert made.missing == before


async def test_an_api_server_that_does_not_tell_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    made = await looked(Server(is_away=True))
    await made.look()
    assert (len(caplog.records), made.missing, made.can_lead) == (2, (), True)


async def test_rights_that_come_are_noticed() -> None:
    server = Server(granted={"a": []})
    made = await looked(server, "a")
    server.granted.clear()
    await made.look()
    assert made.missing == ()


async def test_many_namespaces_are_asked_about_in_turns() -> None:
    names = [f"n{number}" for number in range(3 * AT_ONCE)]
    server = Server()
    made = await looked(server, *names)
    server.asked.clear()
    for _ in range(3):
        await made.look()
    asked = [namespace for _kind, namespace in server.asked if namespace != "specdec-system"]
    assert sorted(asked) == sorted(names)


async def test_places_that_lack_something_are_asked_about_each_time() -> None:
    names = [f"n{number}" for number in range(3 * AT_ONCE)]
    server = Server(granted={"n40": []})
    made = await looked(server, *names)
    server.asked.clear()
    for _ in range(3):
        await made.look()
    assert [namespace for _kind, namespace in server.asked].count("n40") == 3


async def test_the_account_is_asked_for_once() -> None:
    server = Server()
    made = check(server)
    assert [await made.account(), await made.account(), len(server.asked)] == ["me", "me", 1]
