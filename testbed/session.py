"""All that a model needs to serve: a cluster with a real node, the simulator image, a model hub, the operator."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from specdec_operator.api.configuration import OperatorConfiguration
from testbed.cluster import ClusterOptions, RealNode, running_cluster
from testbed.cluster.cache import cache_directory
from testbed.cluster.helm import built_helm
from testbed.cluster.requirements import require_node_programs
from testbed.hub.server import Hub
from testbed.operator.image import build_operator_image
from testbed.operator.release import OperatorRelease, chart_version
from testbed.played_releases import default_parts, other_releases
from testbed.runtime.build import build_image

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from testbed.cluster import Cluster, ClusterAccess, Progress
    from testbed.runtime.build import BuiltImage

GPUS = 8
PRODUCT = "NVIDIA-H100-80GB-HBM3"
RELEASE = "26.02-simulator"
STORE_SIZE = "10Gi"


@dataclass(frozen=True)
class Session:
    """A cluster in which models come to serve.

    Attributes:
        cluster: it runs, with one real node of declared GPUs.
        image: the simulator image, imported into the node.
        hub: the model hub that pods fetch from.
        operator: it leads and watches.
    """

    cluster: Cluster
    image: BuiltImage
    hub: Hub
    operator: OperatorRelease


@contextmanager
def running_session(
    *, progress: Progress, gpus: int = GPUS, releases: Sequence[dict[str, Any]] = ()
) -> Iterator[Session]:
    """Start a session, and stop all of it when the body ends, however it ends.

    Args:
        progress: where each step is announced.
        gpus: that the node declares.
        releases: further rows of the operator's capability table.

    Raises:
        RealNodeUnavailableError: this machine can't carry a real node.
        ImageBuildError: the simulator image could not be built.
        TestbedError: something else did not start; the message says what, and what to do.
    """
    # Before the images: they take minutes, and would be in vain on a machine that can't carry a node.
    require_node_programs(progress)
    image = build_image(cache=cache_directory(), progress=progress.say)
    with progress.step("build the operator's image"):
        operator_image = build_operator_image(cache=cache_directory(), progress=_unsaid)
    node = RealNode(gpus=gpus, product=PRODUCT, images=[image.archive, operator_image.archive])
    options = ClusterOptions(kwok_nodes=None, real_node=node)
    with (
        built_helm(progress) as helm,
        running_cluster(options, progress=progress) as cluster,
        running_hub(cluster) as hub,
    ):
        rows = [simulator_release(image.reference), *other_releases(), *releases]
        operator = OperatorRelease(
            cluster,
            replace(helm, kubeconfig=cluster.kubeconfig),
            image=operator_image.reference,
            configuration=configuration(rows, endpoint=hub.url),
            directory=cluster.directory / "operator",
            node=cluster.node,
        )
        install_operator(operator, progress=progress)
        yield Session(cluster=cluster, image=image, hub=hub, operator=operator)


def _unsaid(line: str) -> None:
    """Keep a build's many lines to itself: an error has the last of them."""
    del line


def install_operator(operator: OperatorRelease, *, progress: Progress) -> None:
    """Install the operator by Helm and wait until it is ready.

    Raises:
        TestbedError: Helm or the cluster refused it, or it is not ready in time; the message says why.
    """
    with progress.step(f"install the operator by Helm (chart {chart_version()}, release {operator.name})"):
        operator.install()
        asyncio.run(operator.ready())


@contextmanager
def running_hub(cluster: ClusterAccess) -> Iterator[Hub]:
    """Start the model hub where the cluster's pods reach it; stop it when the body ends.

    Raises:
        OSError: it can't listen at the cluster's address of this machine.
    """
    hub = Hub.from_file()
    hub.start(host=cluster.host_address)
    try:
        yield hub
    finally:
        hub.stop()


def configuration(
    releases: Sequence[dict[str, Any]], *, endpoint: str, namespaces: Sequence[str] = ()
) -> OperatorConfiguration:
    """Return the operator's configuration: the hub, a default store and the simulator as default release."""
    return OperatorConfiguration.model_validate(
        {
            "storage": {"claim": {"size": STORE_SIZE}},
            "huggingFaceEndpoint": endpoint,
            "gpuProduct": PRODUCT,
            "defaultReleases": {"LLMAPI": RELEASE, "TensorRTEngine": RELEASE, "VLLM": RELEASE},
            "releases": list(releases),
            "namespaces": list(namespaces),
        }
    )


def simulator_release(image: str, *, name: str = RELEASE, **fields: Any) -> dict[str, Any]:
    """Return the row of the capability table that the simulator image plays."""
    return {
        "name": name,
        "image": image,
        "tensorrtLLM": "1.1.0",
        "simulator": True,
        **default_parts(),
        "TensorRTEngine": {"methods": ["Eagle", "Medusa", "DraftTarget", "Lookahead", "ReDrafter", "None"]},
        "source": "the testbed's simulator image",
        **fields,
    }
