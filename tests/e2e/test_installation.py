"""The operator comes, is upgraded, goes and comes back another way, while models answer a steady flow of requests.

Runs last: it ends with an operator that is no Helm release.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from testbed.operator.chart import NAMESPACE
from testbed.operator.install import SERVICE_ACCOUNT, rights
from tests.e2e.next_release import MARK, next_chart, overlay
from tests.e2e.traffic import Answers, Traffic

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.e2e.place import Place

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]

MODELS = ("engine", "pair")
STEPS = ("helm test", "helm upgrade", "helm rollback", "helm uninstall", "kubectl apply")
CRD = "speculativemodels.specdec.dev"
NAMESPACED = f"--namespace={NAMESPACE}"
NOTE = "written-while-no-operator-ran"
RULE = re.compile(r"^(?P<resource>\S*) +\[(?P<urls>.*?)\] +\[(?P<names>.*?)\] +\[(?P<verbs>.*?)\]$", re.MULTILINE)

Grant = tuple[str, str, str]
"""A verb, a resource with its group, and the name of the one object that it is for, or nothing."""


@dataclass(frozen=True)
class Step:
    """One step of the installation's life.

    Attributes:
        said: what the tool printed.
        answers: what became of the requests of that time, for each model.
        serving: what serves each model after it.
        operator: uids of the operator's pods after it.
        crd: the CRD's description after it.
    """

    said: str
    answers: Mapping[str, Answers]
    serving: Mapping[str, Any]
    operator: frozenset[str]
    crd: str


@dataclass
class Life:
    """What was seen along the way.

    Attributes:
        serving: what served each model before.
        operator: uids of the operator's pods before.
        steps: by name.
        grants: what the API server said that the operator may do, by namespace.
        others: what it said of an account without any role.
        notes: the release's.
        shown: the metric of a serving model's condition Ready.
        service: the annotations of the Service whose spec changed while no operator ran, before one was back.
    """

    serving: Mapping[str, Any]
    operator: frozenset[str]
    steps: dict[str, Step] = field(default_factory=dict)
    grants: dict[str, frozenset[Grant]] = field(default_factory=dict)
    others: dict[str, frozenset[Grant]] = field(default_factory=dict)
    notes: str = ""
    shown: float | None = None
    service: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Installation:
    """Takes the steps, and looks after each."""

    place: Place
    traffic: Traffic
    folder: Path
    life: Life
    _seen: Mapping[str, Answers] = field(default_factory=lambda: dict.fromkeys(MODELS, Answers()))

    def live(self) -> None:
        """Take all steps."""
        operator = self.place.session.operator
        revision = self.look()
        self.step("helm test", operator.test())
        self.upgrade()
        said = operator.rollback(revision)
        asyncio.run(operator.ready())
        self.step("helm rollback", said)
        self.step("helm uninstall", operator.uninstall())
        self.apply()

    def look(self) -> int:
        """Note what the first release says of itself, and what it may do; returns its revision."""
        place, life = self.place, self.life
        operator = place.session.operator
        release = json.loads(operator.helm.run("status", operator.name, NAMESPACED, "--output=json"))
        life.notes = release["info"]["notes"]
        for namespace in (NAMESPACE, place.namespace):
            life.grants[namespace] = grants(place, SERVICE_ACCOUNT, namespace=namespace)
            life.others[namespace] = grants(place, "nobody", namespace=namespace)
        labels = {"namespace": place.namespace, "name": "pair", "type": "Ready", "status": "True", "reason": "Serving"}
        life.shown = asyncio.run(operator.gauge("specdec_model_condition", **labels))
        revision: int = release["version"]
        return revision

    def upgrade(self) -> None:
        """Take a next version: its chart, image, CRDs and a setting are others; and apply a model to it."""
        operator = self.place.session.operator
        assert operator.node
        image = f"{operator.image}-next"
        operator.node.tag_image(operator.image, image)
        operator.image = image
        chart = next_chart(self.folder)
        said = operator.upgrade(chart=chart, configuration=operator.configuration.model_copy(update={"workers": 4}))
        asyncio.run(operator.ready())
        self.place.apply_model("later", {**self.place.model("pair")["spec"], "replicas": 0})
        self.place.until_condition("later", "EnginesReady", "True")
        self.step("helm upgrade", said)

    def apply(self) -> None:
        """Change a model while no operator runs, and bring one back without Helm."""
        place, operator = self.place, self.place.session.operator
        # Its rights went before it could give its Lease back.
        place.shorten_lease()
        place.patch("pair", {"service": {"annotations": {NOTE: "yes"}}})
        self.life.service = service_annotations(place, "pair")
        folder = overlay(self.folder / "overlay", image=operator.image, configuration=operator.configuration)
        said = operator.cluster.kubectl("apply", "--server-side", f"--kustomize={folder}")
        asyncio.run(operator.ready())
        place.until_ready("pair")
        self.step("kubectl apply", said)

    def step(self, name: str, said: str) -> None:
        """Note what is there after a step, and what became of the requests since the one before."""
        crd = self.place.session.cluster.client.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}")
        answers = self.traffic.answers(since=self._seen)
        self.life.steps[name] = Step(
            said,
            {model: found.since(self._seen[model]) for model, found in answers.items()},
            {model: serving(self.place, model) for model in MODELS},
            operator_pods(self.place),
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"],
        )
        self._seen = answers


def serving(place: Place, model: str) -> dict[str, Any]:
    """Return all that would be other if a model's pods or what they load were made again."""
    pod, status = place.serving_pod(model), place.model(model)["status"]
    return {
        "pod": pod["metadata"]["uid"],
        "restarts": [c["restartCount"] for c in pod["status"]["containerStatuses"]],
        "revision": status["currentRevision"],
        "artifacts": sorted(artifact["name"] for artifact in status["artifacts"]),
        "jobs": sorted(job for artifact in status["artifacts"] for job in place.jobs(artifact["name"])),
        "ready": [c["status"] for c in status["conditions"] if c["type"] == "Ready"],
    }


def operator_pods(place: Place) -> frozenset[str]:
    return frozenset(pod["metadata"]["uid"] for pod in place.session.operator.pods.present())


def service_annotations(place: Place, model: str) -> dict[str, str]:
    annotations: dict[str, str] = place.get("service", f"{model}-serving")["metadata"].get("annotations", {})
    return annotations


def grants(place: Place, account: str, *, namespace: str) -> frozenset[Grant]:
    """Ask the API server what an account may do in a namespace."""
    who = f"--as=system:serviceaccount:{NAMESPACE}:{account}"
    said = place.session.cluster.kubectl("auth", "can-i", "--list", who, f"--namespace={namespace}")
    found = [rule.groupdict() for rule in RULE.finditer(said)]
    assert len(found) == len(said.splitlines()) - 1, said
    return frozenset(
        (verb, rule["resource"] or url, name)
        for rule in found
        for verb in rule["verbs"].split()
        for url in rule["urls"].split() or [""]
        for name in rule["names"].split() or [""]
    )


def shipped(kinds: set[str]) -> set[Grant]:
    """Return what the shipped roles of these kinds grant."""
    return {
        (verb, qualified(resource, group), name)
        for role in rights()
        if role["kind"] in kinds
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def qualified(resource: str, group: str) -> str:
    """Return a resource as kubectl writes it, such as `deployments.apps` or `deployments.apps/status`."""
    plural, slash, subresource = resource.partition("/")
    return f"{plural}.{group}{slash}{subresource}" if group else resource


@pytest.fixture(scope="module")
def life(entered: Place, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """The installation's life while the models answer."""
    for model in MODELS:
        entered.until_ready(model)
    seen = Life({model: serving(entered, model) for model in MODELS}, operator_pods(entered))
    with Traffic(entered, MODELS) as traffic:
        Installation(entered, traffic, tmp_path_factory.mktemp("installation"), seen).live()
    return seen


@pytest.mark.parametrize("step", STEPS)
def test_each_request_is_answered_rightly_during(step: str, life: Life) -> None:
    for answers in life.steps[step].answers.values():
        assert answers.right
        assert not answers.wrong
        assert not answers.failed


@pytest.mark.parametrize("step", STEPS)
def test_what_serves_a_model_is_not_touched_by(step: str, life: Life) -> None:
    assert life.steps[step].serving == life.serving


def test_helms_test_of_the_release_passes(life: Life) -> None:
    assert re.search(r"^Phase: +Succeeded$", life.steps["helm test"].said, re.MULTILINE)


@pytest.mark.parametrize(("step", "before"), [("helm upgrade", "helm test"), ("helm rollback", "helm upgrade")])
def test_the_operator_itself_is_replaced_by(step: str, before: str, life: Life) -> None:
    assert life.steps[step].operator.isdisjoint(life.steps[before].operator)


def test_an_upgrade_brings_the_new_crds_and_a_rollback_the_old(life: Life) -> None:
    marked = [step for step in STEPS if life.steps[step].crd == MARK]
    assert marked == ["helm upgrade"]


def test_an_uninstall_takes_the_operator_and_says_that_the_crds_are_kept(life: Life) -> None:
    assert life.steps["helm uninstall"].operator == frozenset()
    assert CRD in life.steps["helm uninstall"].said


def test_the_notes_say_what_an_uninstall_leaves(life: Life) -> None:
    for part in ("models go on serving", "the CRDs", "PersistentVolumeClaim", "helm test specdec-operator"):
        assert part in life.notes


def test_a_change_that_came_while_no_operator_ran_is_taken_up(place: Place, life: Life) -> None:
    assert NOTE not in life.service
    assert service_annotations(place, "pair")[NOTE] == "yes"


def test_a_models_condition_is_a_metric(life: Life) -> None:
    assert life.shown == 1


@pytest.mark.parametrize("where", [NAMESPACE, "installation"])
def test_the_operator_may_do_what_its_roles_say_and_nothing_more(where: str, life: Life) -> None:
    roles = {"ClusterRole", "Role"} if where == NAMESPACE else {"ClusterRole"}
    assert life.grants[where] - life.others[where] == shipped(roles)
