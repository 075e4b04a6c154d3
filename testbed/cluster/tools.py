"""Which programs a cluster needs, and the Go module that each is built from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

TOOLS_DIRECTORY = Path(__file__).parent / "tools"
KUBERNETES_VERSION = "v1.36.3"

# Without these the version is one that neither Helm nor kubectl can parse.
_VERSION_PACKAGE = "k8s.io/component-base/version"
LINKER_FLAGS = " ".join(
    (
        "-s -w",
        f"-X {_VERSION_PACKAGE}.gitVersion={KUBERNETES_VERSION}",
        f"-X {_VERSION_PACKAGE}.gitMajor=1",
        f"-X {_VERSION_PACKAGE}.gitMinor=36",
    )
)
BUILD_FLAGS = ("-trimpath", "-ldflags", LINKER_FLAGS)


@dataclass(frozen=True)
class Tool:
    """A program of the cluster.

    Attributes:
        name: name of the binary.
        module: folder of its Go module below `tools/`.
        package: Go package of its main function.
        tags: build tags.
    """

    name: str
    module: str
    package: str
    tags: tuple[str, ...] = ()

    @property
    def flags(self) -> Sequence[str]:
        """The flags of its `go build`."""
        return (*BUILD_FLAGS, "-tags", ",".join(self.tags)) if self.tags else BUILD_FLAGS

    @property
    def source(self) -> Path:
        """The folder of the tool's Go module."""
        return TOOLS_DIRECTORY / self.module

    def directory_name(self) -> str:
        """Name the folder of its binary after all that decides the binary's content."""
        digest = hashlib.sha256()
        for part in (
            (self.source / "go.mod").read_bytes(),
            (self.source / "go.sum").read_bytes(),
            " ".join(self.flags).encode(),
        ):
            digest.update(len(part).to_bytes(8, "big") + part)
        return f"{self.module}-{digest.hexdigest()[:12]}"


def _kubernetes(name: str) -> Tool:
    return Tool(name=name, module="kubernetes", package=f"k8s.io/kubernetes/cmd/{name}")


def _containerd(name: str) -> Tool:
    return Tool(name=name, module="containerd", package=f"github.com/containerd/containerd/v2/cmd/{name}")


CONTROL_PLANE: Sequence[Tool] = (
    Tool(name="etcd", module="etcd", package="go.etcd.io/etcd/server/v3"),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubectl"),
    Tool(name="kwok", module="kwok", package="sigs.k8s.io/kwok/cmd/kwok"),
)
NODE: Sequence[Tool] = (
    _kubernetes("kubelet"),
    _kubernetes("kube-proxy"),
    _containerd("containerd"),
    _containerd("containerd-shim-runc-v2"),
    _containerd("ctr"),
    Tool(name="coredns", module="coredns", package="github.com/coredns/coredns"),
)
HELM: Sequence[Tool] = (Tool(name="helm", module="helm", package="helm.sh/helm/v4/cmd/helm"),)
PROMTOOL: Sequence[Tool] = (
    Tool(
        name="promtool",
        module="prometheus",
        package="github.com/prometheus/prometheus/cmd/promtool",
        # Without the clients of two dozen clouds, which find targets.
        tags=("remove_all_sd",),
    ),
)

# What setup-envtest and the like provide.
ENVTEST_TOOLS = frozenset({"etcd", "kube-apiserver", "kubectl"})
