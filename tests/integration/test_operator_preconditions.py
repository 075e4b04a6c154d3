"""Rights that are missing, CRDs older than the operator, two operators on one namespace: said, and worked around."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
import yaml

from specdec_operator.cluster.resources import JOBS, ResourceType
from specdec_operator.cluster.rights import WATCHED, own, rules
from testbed.operator.in_process import InProcessOperator
from testbed.operator.install import grant_instance, operator_kubeconfig
from testbed.operator.metrics import read_gauge
from tests.integration.scene import Scene, Stage, baseline, condition, configuration, stage
from tests.integration.test_operator_before_crds import until_said

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from specdec_operator.cluster.rights import Right
    from testbed.cluster import Cluster

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

DEFINITIONS = ResourceType(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
SYSTEM = "lesser-system"
ACCOUNT = "lesser"
NAMES = ("preconditions-granted", "preconditions-lacking")
RACE = "preconditions-race"
OLD = "preconditions-old"
WITHOUT_JOBS = [right for right in WATCHED if right.resource != JOBS]
SECONDS = 30.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def made(operator_cluster: Cluster) -> AsyncIterator[Stage]:
    async with stage(operator_cluster) as opened:
        yield opened


def grant(cluster: Cluster, rights: Sequence[Right], *, namespace: str) -> None:
    """Let the lesser account do so much in a namespace, and no more."""
    metadata = {"name": ACCOUNT, "namespace": namespace}
    role = {"kind": "Role", "metadata": metadata, "rules": rules(rights)}
    binding = {
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM}],
    }
    apply(cluster, *({"apiVersion": "rbac.authorization.k8s.io/v1", **document} for document in (role, binding)))


def apply(cluster: Cluster, *documents: dict[str, Any]) -> None:
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=yaml.safe_dump_all(documents))


def lesser_account(cluster: Cluster) -> Path:
    """Make an account without any right."""
    apply(
        cluster,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": SYSTEM}},
    )
    return cluster.kubeconfig_for_service_account(namespace=SYSTEM, name=ACCOUNT)


@contextlib.asynccontextmanager
async def starting(made: Stage, kubeconfig: Path, **fields: Any) -> AsyncIterator[InProcessOperator]:
    """Start an operator without waiting until it is ready."""
    operator = InProcessOperator(configuration(**fields), kubeconfig, made.prover)
    task = asyncio.create_task(operator.start())
    try:
        yield operator
    finally:
        task.cancel()
        await operator.stop()


async def until_ready(operator: InProcessOperator) -> None:
    async with asyncio.timeout(SECONDS):
        while not await operator.is_ready():  # noqa: ASYNC110 - what is waited for is another thread's
            await asyncio.sleep(0.2)


async def test_missing_rights_are_named_what_is_granted_is_served_and_what_comes_is_used(made: Stage) -> None:
    cluster = made.cluster
    granted, lacking = [await made.scene(name) for name in NAMES]
    kubeconfig = lesser_account(cluster)
    grant(cluster, WATCHED, namespace=granted.namespace)
    grant(cluster, WITHOUT_JOBS, namespace=lacking.namespace)
    async with starting(made, kubeconfig, instance=f"{SYSTEM}/{ACCOUNT}", namespaces=list(NAMES)) as operator:
        await _waits_for_its_lease(cluster, operator)
        await _works_where_it_may(operator, granted, lacking)
        grant(cluster, WATCHED, namespace=lacking.namespace)
        await until_ready(operator)
        await lacking.until_ready("base")
        await _notices_what_is_taken(cluster, operator, lacking)


async def _waits_for_its_lease(cluster: Cluster, operator: InProcessOperator) -> None:
    said = await until_said(
        operator, f"create leases.coordination.k8s.io, get/update leases.coordination.k8s.io {ACCOUNT}"
    )
    assert f"--as=system:serviceaccount:{SYSTEM}:{ACCOUNT}" in said
    grant(cluster, own(ACCOUNT), namespace=SYSTEM)


async def _works_where_it_may(operator: InProcessOperator, granted: Scene, lacking: Scene) -> None:
    await granted.apply("base", baseline())
    await lacking.apply("base", baseline())
    await granted.until_ready("base")
    said = await until_said(
        operator, f"create/delete/get/list/patch/watch jobs.batch in namespace {lacking.namespace}."
    )
    assert "leases" not in said
    model = await lacking.until_condition("base", "ModelsCached", "False", reason="OperatorForbidden")
    assert f"jobs.batch in namespace {lacking.namespace}" in condition(model, "ModelsCached")["message"]
    await lacking.until_event("base", "OperatorForbidden")
    labels = {"verb": "create", "resource": "jobs.batch", "scope": lacking.namespace}
    assert await read_gauge(f"{operator.url}/metrics", "specdec_operator_missing_permission", labels) == 1


async def _notices_what_is_taken(cluster: Cluster, operator: InProcessOperator, scene: Scene) -> None:
    grant(cluster, WITHOUT_JOBS, namespace=scene.namespace)
    await scene.apply("later", baseline("testbed/later"))
    await scene.until_condition("later", "ModelsCached", "False", reason="OperatorForbidden")
    await until_said(operator, f"jobs.batch in namespace {scene.namespace}")


async def test_a_crd_older_than_the_operator_is_named_and_its_models_are_served(made: Stage) -> None:
    scene = await made.scene(OLD)
    grant_instance(made.cluster, OLD)
    whole = await scene.api.get(DEFINITIONS, namespace=None, name="speculativemodels.specdec.dev")
    older = copy.deepcopy(whole)
    schema = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    del schema["spec"]["properties"]["suspend"]
    del schema["status"]["properties"]["pins"]
    await scene.api.replace(DEFINITIONS, older)
    kubeconfig = operator_kubeconfig(made.cluster)
    try:
        async with starting(made, kubeconfig, instance=f"specdec-system/{OLD}", namespaces=[OLD]) as operator:
            said = await until_said(operator, "SpeculativeModel lacks spec.suspend, status.pins")
            assert "kubectl apply --server-side -f crds/" in said
            await scene.apply("base", baseline())
            model = await scene.until_ready("base")
            assert "pins" not in model["status"]
            await _restore(scene, whole)
            await until_ready(operator)
            assert await read_gauge(f"{operator.url}/metrics", "specdec_operator_crd_missing_fields", {}) == 0
    finally:
        await _restore(scene, whole)


async def _restore(scene: Scene, whole: dict[str, Any]) -> None:
    live = await scene.api.get(DEFINITIONS, namespace=None, name="speculativemodels.specdec.dev")
    await scene.api.replace(DEFINITIONS, {**live, "spec": whole["spec"]})


async def test_of_two_operators_one_brings_a_new_model_on_and_the_other_says_so(
    made: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    scene = await made.scene(RACE)
    names = ("race-a", "race-b")
    for name in names:
        grant_instance(made.cluster, name)
    kubeconfig = operator_kubeconfig(made.cluster)
    async with contextlib.AsyncExitStack() as stack:
        operators = {}
        for name in names:
            instance = f"specdec-system/{name}"
            operators[instance] = await stack.enter_async_context(
                starting(made, kubeconfig, instance=instance, namespaces=[RACE])
            )
        for operator in operators.values():
            await until_ready(operator)
        await scene.apply("base", baseline())
        model = await scene.until_ready("base")
        winner = model["status"]["controller"]
        (loser,) = operators.keys() - {winner}
        event = await scene.until_event("base", "OtherController")
        assert f"operator {winner} writes this model's status and is alive" in event["note"]
        labels = {"namespace": RACE, "name": "base", "controller": winner}
        url = f"{operators[loser].url}/metrics"
        assert await read_gauge(url, "specdec_model_other_controller", labels) == 1
        assert set((await operators[loser].requests()).writes()) <= {"apply_status speculativemodels", "create events"}
        assert await operators[loser].is_ready()
        said = [r.getMessage() for r in caplog.records if "is left alone" in r.getMessage()]
        assert len(said) == 1
