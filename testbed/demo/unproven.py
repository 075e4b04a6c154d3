"""The demo without a real node: a real control plane judges everything, but nodes and pods are played by kwok."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.cluster.http import HttpKubernetesApi
from specdec_operator.cluster.kubeconfig import kubeconfig_credentials
from specdec_operator.cluster.login import open_session
from specdec_operator.pod.model_facts import read_facts
from specdec_operator.triton.proof import Endpoint, Outcome, Proof, ProofRequest
from testbed.cluster import ClusterOptions, KwokNodes, running_cluster
from testbed.cluster.volumes import storage_class, volume_object
from testbed.demo.closing import look_around, show_objects
from testbed.demo.models import condition, is_current
from testbed.demo.watching import NAMESPACE, POLL_SECONDS, Watch, apply
from testbed.operator import Ending, JobPlayer, install, operator_in_process, succeeds
from testbed.session import GPUS, PRODUCT, STORE_SIZE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from testbed.cluster import Cluster, Progress
    from testbed.demo.models import Json
    from testbed.demo.screen import Screen

HUB_MODELS = Path(__file__).parents[1] / "hub" / "models"
DEADLINE_SECONDS = 120.0


class NobodyAnswers:
    """The proof where pods run no program: it is never more than unknown."""

    async def prove(self, endpoint: Endpoint, request: ProofRequest) -> Proof:
        """Say that nothing can answer."""
        del endpoint, request
        return Proof(outcome=Outcome.UNREACHABLE, message="kwok's pods run no program; a real node needs root on Linux")


def show_unproven(manifests: Path, *, reason: str, keep: bool, screen: Screen, progress: Progress) -> None:
    """Take the models in the manifests as far as pods that run nothing can take them.

    Raises:
        TestbedError: a step failed.
    """
    screen.wrapped(f"No real node: {reason}.", indent="")
    screen.say("The control plane is real; nodes, GPUs and pods are played, and answer nothing.")
    with played_cluster(progress=progress) as cluster:
        asyncio.run(_show(cluster, manifests, keep=keep, screen=screen))


@contextlib.contextmanager
def played_cluster(*, progress: Progress) -> Iterator[Cluster]:
    """Start a cluster whose node and pods are played, ready for the operator; stop it when the body ends.

    Raises:
        TestbedError: it did not start.
    """
    nodes = KwokNodes(count=1, gpus=GPUS, product=PRODUCT)
    with running_cluster(ClusterOptions(kwok_nodes=nodes), progress=progress) as cluster:
        with progress.step("install the CRDs and the operator's rights"):
            install(cluster)
            cluster.client.create("/apis/storage.k8s.io/v1/storageclasses", storage_class())
            cluster.client.create(
                "/api/v1/persistentvolumes", volume_object("rwo-0", path=Path("/nowhere"), node=nodes.names()[0])
            )
        yield cluster


def is_prepared(model: Json) -> bool:
    """Whether everything is done but the proof."""
    return is_current(model) and condition(model, "Served").get("reason") == "ProofUnreachable"


def facts_of_models(directory: Path = HUB_MODELS) -> dict[str, Sequence[Ending]]:
    """Return how the fetch of each of the hub's models ends: with the facts that its files tell."""
    return {
        f"{model.parent.name}/{model.name}": [succeeds(read_facts(model, commit="0" * 40).to_wire())]
        for model in sorted(directory.glob("*/*"))
        if model.is_dir()
    }


async def _show(cluster: Cluster, manifests: Path, *, keep: bool, screen: Screen) -> None:
    logging.basicConfig(filename=cluster.directory / "logs" / "operator.log", level=logging.INFO)
    async with played_jobs(cluster), operator_in_process(cluster, played_configuration(), prover=NobodyAnswers()):
        models = await _prepared(cluster, manifests, screen=screen)
        show_objects(cluster, models, screen=screen)
        screen.title("Served=Unknown: not proven: needs root or KUBECONFIG")
        screen.say("  on a cluster of yours, without root here: make demo KUBECONFIG=FILE ADDRESS=IP (docs/testbed.md)")
        look_around(cluster, keep=keep, screen=screen)
        if keep:
            await asyncio.Event().wait()


async def _prepared(cluster: Cluster, manifests: Path, *, screen: Screen) -> Sequence[Json]:
    count = apply(cluster, manifests)
    screen.title(f"{count} model{'s' if count != 1 else ''}, as far as played pods can take them")
    watch = Watch(cluster, screen, DEADLINE_SECONDS, check=lambda: None)
    while (models := watch.look(is_prepared)) is None:  # noqa: ASYNC110 - the API server is asked, nothing can tell
        await asyncio.sleep(POLL_SECONDS)
    return models


@contextlib.asynccontextmanager
async def played_jobs(cluster: Cluster) -> AsyncIterator[None]:
    """Have the Jobs of the demo's namespace end as those of the testbed's models do, until the body ends."""
    credentials = kubeconfig_credentials(cluster.kubeconfig)
    async with open_session(credentials) as session:
        player = JobPlayer(HttpKubernetesApi(session, credentials.server, field_manager="demo"))
        player.script(NAMESPACE).models.update(facts_of_models())
        playing = asyncio.create_task(player.run(), name="job-player")
        try:
            yield
        finally:
            playing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await playing


def played_configuration() -> OperatorConfiguration:
    """Return the configuration of an operator where pods are played."""
    return OperatorConfiguration.model_validate({"storage": {"claim": {"size": STORE_SIZE}}, "gpuProduct": PRODUCT})
