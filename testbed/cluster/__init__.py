"""A real Kubernetes cluster made of binaries from package registries: control plane, kwok nodes, a real node."""

from testbed.cluster.access import ClusterAccess
from testbed.cluster.cluster import Cluster, ClusterOptions
from testbed.cluster.errors import RealNodeUnavailableError, TestbedError
from testbed.cluster.existing import ExistingCluster
from testbed.cluster.kwok import KwokNodes
from testbed.cluster.lifecycle import running_cluster
from testbed.cluster.node import RealNode
from testbed.cluster.progress import Progress, SilentProgress, TerminalProgress

__all__ = [
    "Cluster",
    "ClusterAccess",
    "ClusterOptions",
    "ExistingCluster",
    "KwokNodes",
    "Progress",
    "RealNode",
    "RealNodeUnavailableError",
    "SilentProgress",
    "TerminalProgress",
    "TestbedError",
    "running_cluster",
]
