"""The demo on a cluster that the user already has; what it made there goes at its end."""

from __future__ import annotations

import json
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from testbed.cluster.errors import CommandError
from testbed.cluster.existing import ExistingCluster, find_kubectl
from testbed.cluster.lifecycle import uninterrupted
from testbed.demo.answers import Answers, through_cluster_ip
from testbed.demo.closing import show_objects
from testbed.demo.errors import DemoError
from testbed.demo.models import serves
from testbed.demo.port_forward import through_port_forward
from testbed.demo.preconditions import LOAD_COMMANDS, nodes_without_image, require_usable
from testbed.demo.served import DEADLINE_SECONDS, SIMULATOR_NOTE, check_operator, last_words, manifests_name
from testbed.demo.unproven import is_prepared
from testbed.demo.watching import Watch, apply
from testbed.operator.install import CRDS, install_rights, rights
from testbed.runtime.simulator.release import IMAGE_REFERENCE
from testbed.session import running_operator, simulator_release

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from testbed.cluster import Progress
    from testbed.demo.models import Json
    from testbed.demo.screen import Screen
    from testbed.operator import OperatorProcess

NAMESPACE = "specdec-demo"
GRACE_SECONDS = 5


def serve_on(
    kubeconfig: Path, manifests: Path, *, address: str, keep: bool, screen: Screen, progress: Progress
) -> None:
    """Take the models in the manifests to served answers on the cluster of a kubeconfig.

    Args:
        kubeconfig: the administrator's; its current context is used.
        manifests: file or folder of SpeculativeModels.
        address: of this machine, at which the cluster's pods reach it.
        keep: leave all of it running until Ctrl-C.
        screen: where the models are shown.
        progress: where each step is announced.

    Raises:
        TestbedError: a step failed, or the cluster lacks something; the message says what helps.
    """
    screen.wrapped(SIMULATOR_NOTE, indent="")
    with tempfile.TemporaryDirectory(prefix="specdec-demo-") as directory:
        cluster = ExistingCluster(kubeconfig.absolute(), address, Path(directory), find_kubectl(progress))
        require_usable(cluster, namespace=NAMESPACE)
        _note_image(cluster, screen)
        with _installed(cluster, progress), _operator(cluster, progress) as operator, _namespace(cluster, progress):
            try:
                _show(cluster, manifests, operator=operator, screen=screen)
            except DemoError as error:
                raise DemoError(f"{error}\n{last_words(operator)}") from error
            _close(cluster, keep=keep, screen=screen)


def _show(cluster: ExistingCluster, manifests: Path, *, operator: OperatorProcess, screen: Screen) -> None:
    count = apply(cluster, manifests, namespace=NAMESPACE)
    screen.title(f"{count} model{'s' if count != 1 else ''}, from {manifests_name(manifests)} to served answers")
    watch = Watch(cluster, screen, DEADLINE_SECONDS, check=lambda: check_operator(operator), namespace=NAMESPACE)
    models = watch.until(lambda model: serves(model) or is_prepared(model))
    _answers(cluster, models, screen=screen).show(models, screen=screen)
    show_objects(cluster, models, screen=screen, namespace=NAMESPACE)


def _answers(cluster: ExistingCluster, models: Sequence[Json], *, screen: Screen) -> Answers:
    if all(serves(model) for model in models):
        return Answers(cluster, NAMESPACE, through_cluster_ip(cluster, namespace=NAMESPACE))
    screen.say()
    screen.wrapped(
        "Served=Unknown: this machine does not reach the cluster's Services, so the operator that runs on it proved "
        "nothing. The prompts go through kubectl port-forward.",
        indent="",
    )
    return Answers(cluster, NAMESPACE, through_port_forward(cluster, namespace=NAMESPACE))


def _close(cluster: ExistingCluster, *, keep: bool, screen: Screen) -> None:
    if not keep:
        screen.title("Done. KEEP=1 (--keep) leaves it running until Ctrl-C, for kubectl.")
        return
    screen.title("It stays until Ctrl-C, and is removed then. To look around, in another terminal:")
    screen.say(f"  {cluster.kubectl_program} --kubeconfig={cluster.kubeconfig} get specmodel -n {NAMESPACE} -o wide")
    threading.Event().wait()


def _note_image(cluster: ExistingCluster, screen: Screen) -> None:
    if missing := nodes_without_image(cluster.client.get("/api/v1/nodes")["items"]):
        screen.say(f"{', '.join(missing)}: reports no image {IMAGE_REFERENCE}. If pods can't start, load it:")
        screen.say(LOAD_COMMANDS)


@contextmanager
def _operator(cluster: ExistingCluster, progress: Progress) -> Iterator[OperatorProcess]:
    # It watches the demo's namespace alone: models of others are none of its business.
    rows = [simulator_release(IMAGE_REFERENCE)]
    with running_operator(cluster, releases=rows, progress=progress, namespaces=[NAMESPACE]) as (_, operator):
        yield operator


@contextmanager
def _installed(cluster: ExistingCluster, progress: Progress) -> Iterator[None]:
    """CRDs where there are none, and the operator's rights; both are removed when the body ends."""
    crds = (f"--filename={CRDS}", "--ignore-not-found")
    bring_crds = not cluster.kubectl("get", *crds, "--output=name").split()
    try:
        with progress.step("install the CRDs and the operator's rights"):
            if bring_crds:
                cluster.kubectl("apply", "--server-side", f"--filename={CRDS}")
                cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"--filename={CRDS}")
            install_rights(cluster)
        yield
    finally:
        with uninterrupted(), progress.step("remove the operator's rights" + (" and the CRDs" if bring_crds else "")):
            _remove(cluster, progress, "--filename=-", "--ignore-not-found", stdin=yaml.safe_dump_all(rights()))
            if bring_crds:
                _remove(cluster, progress, *crds)


@contextmanager
def _namespace(cluster: ExistingCluster, progress: Progress) -> Iterator[None]:
    """The demo's namespace; it and its models are removed when the body ends, while the operator still runs."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    try:
        cluster.kubectl("create", "--filename=-", stdin=json.dumps(namespace))
        yield
    finally:
        with uninterrupted(), progress.step(f"remove the models and namespace {NAMESPACE}"):
            _remove(cluster, progress, "speculativemodels", "--all", f"--namespace={NAMESPACE}")
            # Nobody asks any more: no pod needs its time to finish requests.
            _remove(cluster, progress, "pods", "--all", f"--namespace={NAMESPACE}", f"--grace-period={GRACE_SECONDS}")
            _remove(cluster, progress, "namespace", NAMESPACE, "--ignore-not-found")


def _remove(cluster: ExistingCluster, progress: Progress, *what: str, stdin: str | None = None) -> None:
    """Delete, and go on with the rest where that fails."""
    try:
        cluster.kubectl("delete", *what, "--timeout=120s", stdin=stdin)
    except CommandError as error:
        progress.say(f"not removed, do it by hand: {error}")
