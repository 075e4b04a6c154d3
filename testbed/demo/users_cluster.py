"""The demo on a cluster that the user already has; what it made there goes at its end."""

from __future__ import annotations

import json
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cluster.errors import CommandError
from testbed.cluster.existing import ExistingCluster, find_kubectl
from testbed.cluster.helm import built_helm
from testbed.cluster.kubectl_proxy import reading_through_proxy
from testbed.cluster.lifecycle import uninterrupted
from testbed.demo.answers import Answers
from testbed.demo.closing import show_objects
from testbed.demo.errors import DemoError
from testbed.demo.models import serves
from testbed.demo.port_forward import through_port_forward
from testbed.demo.preconditions import load_commands, nodes_without_images, require_usable
from testbed.demo.served import DEADLINE_SECONDS, SIMULATOR_NOTE, check_operator, last_words, manifests_name
from testbed.demo.watching import Watch, apply
from testbed.operator.chart import NAMESPACE as OPERATOR_NAMESPACE
from testbed.operator.errors import OperatorError
from testbed.operator.image import operator_image_reference
from testbed.operator.install import CRDS
from testbed.operator.release import OperatorRelease
from testbed.runtime.simulator.release import IMAGE_REFERENCE
from testbed.session import configuration, install_operator, running_hub, simulator_release

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from testbed.cluster import Progress
    from testbed.cluster.helm import Helm
    from testbed.demo.screen import Screen
    from testbed.hub.server import Hub

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
        found = ExistingCluster(kubeconfig.absolute(), address, Path(directory), find_kubectl(progress))
        require_usable(found, namespace=NAMESPACE)
        image = operator_image_reference()
        _note_images(found, (IMAGE_REFERENCE, image), screen=screen)
        with (
            reading_through_proxy(found) as cluster,
            built_helm(progress, kubeconfig=cluster.kubeconfig) as helm,
            running_hub(cluster) as hub,
            _namespaces(cluster, progress),
        ):
            operator = _release(cluster, helm, image=image, hub=hub)
            with _installed(operator, progress=progress), _models_removed(cluster, progress):
                try:
                    _show(cluster, manifests, operator=operator, screen=screen)
                except DemoError as error:
                    raise DemoError(f"{error}\n{last_words(operator)}") from error
                _close(cluster, keep=keep, screen=screen)


def _release(cluster: ExistingCluster, helm: Helm, *, image: str, hub: Hub) -> OperatorRelease:
    """Return the operator's release, with CRDs where there are none."""
    rows = [simulator_release(IMAGE_REFERENCE)]
    there = cluster.kubectl("get", f"--filename={CRDS}", "--ignore-not-found", "--output=name").split()
    return OperatorRelease(
        cluster,
        helm,
        image=image,
        # It watches the demo's namespace alone: models of others are none of its business.
        configuration=configuration(rows, endpoint=hub.url, namespaces=[NAMESPACE]),
        directory=cluster.directory,
        values={"crds": {"install": not there, "keep": False}},
    )


def _show(cluster: ExistingCluster, manifests: Path, *, operator: OperatorRelease, screen: Screen) -> None:
    count = apply(cluster, manifests, namespace=NAMESPACE)
    screen.title(f"{count} model{'s' if count != 1 else ''}, from {manifests_name(manifests)} to served answers")
    watch = Watch(cluster, screen, DEADLINE_SECONDS, check=lambda: check_operator(operator), namespace=NAMESPACE)
    models = watch.until(serves)
    # The operator asked through the Services; this machine may not reach them.
    Answers(cluster, NAMESPACE, through_port_forward(cluster, namespace=NAMESPACE)).show(models, screen=screen)
    show_objects(cluster, models, screen=screen, namespace=NAMESPACE)


def _close(cluster: ExistingCluster, *, keep: bool, screen: Screen) -> None:
    if not keep:
        screen.title("Done. KEEP=1 (--keep) leaves it running until Ctrl-C, for kubectl.")
        return
    screen.title("It stays until Ctrl-C, and is removed then. To look around, in another terminal:")
    screen.say(f"  {cluster.kubectl_program} --kubeconfig={cluster.kubeconfig} get specmodel -n {NAMESPACE} -o wide")
    threading.Event().wait()


def _note_images(cluster: ExistingCluster, images: Sequence[str], *, screen: Screen) -> None:
    if missing := nodes_without_images(cluster.client.get("/api/v1/nodes")["items"], images):
        screen.say(f"{', '.join(missing)}: reports no image {' or '.join(images)}. If pods can't start, load them:")
        screen.say(load_commands(images[-1]))


@contextmanager
def _namespaces(cluster: ExistingCluster, progress: Progress) -> Iterator[None]:
    """The demo's namespace; it and the operator's are removed when the body ends."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    names = (NAMESPACE, OPERATOR_NAMESPACE)
    try:
        cluster.kubectl("create", "--filename=-", stdin=json.dumps(namespace))
        yield
    finally:
        with uninterrupted(), progress.step(f"remove namespaces {' and '.join(names)}"):
            _remove(cluster, progress, "namespace", *names, "--ignore-not-found")


@contextmanager
def _installed(operator: OperatorRelease, *, progress: Progress) -> Iterator[None]:
    """Install the operator; all of the release is removed when the body ends."""
    try:
        install_operator(operator, progress=progress)
        yield
    except OperatorError as error:
        raise DemoError(f"{error}\nif its image is missing, load it:\n{load_commands(operator.image)}") from error
    finally:
        with uninterrupted(), progress.step("uninstall the operator"):
            try:
                operator.uninstall()
            except CommandError as error:
                progress.say(f"not removed, do it by hand: {error}")


@contextmanager
def _models_removed(cluster: ExistingCluster, progress: Progress) -> Iterator[None]:
    """Remove the models when the body ends, while the operator still runs."""
    try:
        yield
    finally:
        with uninterrupted(), progress.step("remove the models"):
            _remove(cluster, progress, "speculativemodels", "--all", f"--namespace={NAMESPACE}")
            # Nobody asks any more: no pod needs its time to finish requests.
            _remove(cluster, progress, "pods", "--all", f"--namespace={NAMESPACE}", f"--grace-period={GRACE_SECONDS}")


def _remove(cluster: ExistingCluster, progress: Progress, *what: str) -> None:
    """Delete, and go on with the rest where that fails."""
    try:
        cluster.kubectl("delete", *what, "--timeout=120s")
    except CommandError as error:
        progress.say(f"not removed, do it by hand: {error}")
