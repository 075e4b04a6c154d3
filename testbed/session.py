"""All that a model needs to serve: a cluster with a real node, the simulator image, a model hub, the operator."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specdec_operator.api.configuration import OperatorConfiguration
from testbed.cluster import ClusterOptions, RealNode, running_cluster
from testbed.cluster.cache import cache_directory
from testbed.cluster.requirements import require_node_programs
from testbed.hub.server import Hub
from testbed.operator import OperatorProcess, install
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
    operator: OperatorProcess


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
    # Before the image: it takes minutes, and would be in vain on a machine that can't carry a node.
    require_node_programs(progress)
    image = build_image(cache=cache_directory(), progress=progress.say)
    node = RealNode(gpus=gpus, product=PRODUCT, images=[image.archive])
    with running_cluster(ClusterOptions(kwok_nodes=None, real_node=node), progress=progress) as cluster:
        with progress.step("install the CRDs and the operator's rights"):
            install(cluster)
        rows = [simulator_release(image.reference), *other_releases(), *releases]
        with running_operator(cluster, releases=rows, progress=progress) as (hub, operator):
            yield Session(cluster=cluster, image=image, hub=hub, operator=operator)


@contextmanager
def running_operator(
    cluster: ClusterAccess,
    *,
    releases: Sequence[dict[str, Any]],
    progress: Progress,
    namespaces: Sequence[str] = (),
) -> Iterator[tuple[Hub, OperatorProcess]]:
    """Start a model hub and the operator for a cluster that has its CRDs and rights; stop both when the body ends.

    Args:
        cluster: where the operator works.
        releases: rows of the capability table, the default release among them.
        progress: where each step is announced.
        namespaces: that the operator watches; all of them if empty.

    Raises:
        OSError: the hub can't listen at the cluster's address of this machine.
        TestbedError: the operator did not start; the message says why.
    """
    hub = Hub.from_file()
    wanted = configuration(releases, endpoint=hub.start(host=cluster.host_address), namespaces=namespaces)
    operator = OperatorProcess(cluster, wanted, cluster.directory / "operator")
    try:
        with progress.step("start the operator"):
            operator.start()
            asyncio.run(operator.ready())
        yield hub, operator
    finally:
        operator.stop()
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
