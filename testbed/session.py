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
from testbed.runtime.build import build_image

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from testbed.cluster import Cluster, Progress
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
        hub = Hub.from_file()
        operator = OperatorProcess(
            cluster,
            configuration(image, endpoint=hub.start(host=cluster.host_address), releases=releases),
            cluster.directory / "operator",
        )
        try:
            with progress.step("install the CRDs and the operator's rights, and start the operator"):
                install(cluster)
                operator.start()
                asyncio.run(operator.ready())
            yield Session(cluster=cluster, image=image, hub=hub, operator=operator)
        finally:
            operator.stop()
            hub.stop()


def configuration(
    image: BuiltImage, *, endpoint: str, releases: Sequence[dict[str, Any]] = ()
) -> OperatorConfiguration:
    """Return the operator's configuration: the hub, a default store and the simulator as default release."""
    return OperatorConfiguration.model_validate(
        {
            "storage": {"claim": {"size": STORE_SIZE}},
            "huggingFaceEndpoint": endpoint,
            "gpuProduct": PRODUCT,
            "defaultReleases": {"LLMAPI": RELEASE, "TensorRTEngine": RELEASE},
            "releases": [simulator_release(image), *releases],
        }
    )


def simulator_release(image: BuiltImage, *, name: str = RELEASE, **fields: Any) -> dict[str, Any]:
    """Return the row of the capability table that the simulator image plays."""
    return {
        "name": name,
        "image": image.reference,
        "tensorrtLLM": "1.1.0",
        "simulator": True,
        "LLMAPI": {"methods": ["Eagle3", "None"]},
        "TensorRTEngine": {"methods": ["DraftTarget", "None"]},
        "source": "the testbed's simulator image",
        **fields,
    }
