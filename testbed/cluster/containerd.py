"""containerd on a real node."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cluster.errors import CommandError
from testbed.cluster.processes import wait_until

if TYPE_CHECKING:
    from testbed.cluster.namespaces import Namespaces
    from testbed.cluster.processes import Programs

# Inside the node's own /run, so that nodes don't meet and paths stay below the limit of socket addresses.
SOCKET = "/run/containerd/containerd.sock"
START_SECONDS = 30.0
CAP_SYS_RESOURCE = 24


@dataclass(frozen=True)
class Containerd:
    """containerd of one node.

    Attributes:
        directory: its folder.
        program: path of `containerd`; its shim lies beside it.
        ctr: path of `ctr`.
        runc: path of a runc that knows seccomp.
        plugins: folder of the CNI plugins.
        pause_image: name of the image that holds a pod's namespaces.
    """

    directory: Path
    program: Path
    ctr: Path
    runc: Path
    plugins: Path
    pause_image: str

    @property
    def network_directory(self) -> Path:
        """Folder of the CNI configuration."""
        return self.directory / "cni"

    def start(self, namespaces: Namespaces, *, programs: Programs) -> None:
        """Start it and wait until it answers.

        Raises:
            NotReadyError: it did not answer in time.
            ProgramError: it ended.
        """
        self.directory.mkdir(exist_ok=True)
        configuration = self.directory / "config.toml"
        may_lower = has_capability(CAP_SYS_RESOURCE, status=Path("/proc/self/status").read_text(encoding="utf-8"))
        configuration.write_text(self.configuration(lower_oom_scores=may_lower), encoding="utf-8")
        argv = (str(self.program), f"--config={configuration}")
        programs.start(namespaces.program("containerd", argv))
        wait_until(lambda: self._answers(namespaces), what="containerd", seconds=START_SECONDS, programs=programs)

    def import_image(self, archive: Path, namespaces: Namespaces) -> None:
        """Import an image archive (OCI or Docker); it is found by the name written inside it.

        Raises:
            CommandError: containerd refuses it.
        """
        # Through the transfer service, the way without --local, an import takes nearly twice the processor time.
        namespaces.run((*self._ctr(), "images", "import", "--local", str(archive)))

    def tag_image(self, image: str, name: str, namespaces: Namespaces) -> None:
        """Give an image a further name.

        Raises:
            CommandError: there is no such image, or the name is taken.
        """
        namespaces.run((*self._ctr(), "images", "tag", image, name))

    def kill(self, container: str, namespaces: Namespaces) -> None:
        """Send a container's first process SIGKILL.

        Raises:
            CommandError: there is no such container, or it does not run.
        """
        namespaces.run((*self._ctr(), "tasks", "kill", "--signal=SIGKILL", container))

    def configuration(self, *, lower_oom_scores: bool) -> str:
        """Return the configuration file.

        Args:
            lower_oom_scores: whether this machine lets root protect a process from the out-of-memory killer; where
                it doesn't, runc dies on a pod sandbox that asks for it.
        """
        return f"""\
version = 3
root = "{self.directory}/root"
state = "/run/containerd"

[grpc]
address = "{SOCKET}"

[plugins.'io.containerd.nri.v1.nri']
disable = true

[plugins.'io.containerd.internal.v1.opt']
path = "{self.directory}/opt"

[plugins.'io.containerd.cri.v1.images']
stats_collect_period = 600

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{self.pause_image}"

[plugins.'io.containerd.cri.v1.runtime']
disable_apparmor = true
restrict_oom_score_adj = {str(not lower_oom_scores).lower()}

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{self.plugins}"]
conf_dir = "{self.network_directory}"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "{self.runc}"
SystemdCgroup = false
"""

    def _answers(self, namespaces: Namespaces) -> bool:
        try:
            namespaces.run((*self._ctr(), "version"))
        except CommandError:
            return False
        return True

    def _ctr(self) -> tuple[str, ...]:
        return (str(self.ctr), f"--address={SOCKET}", "--namespace=k8s.io")


def has_capability(number: int, *, status: str) -> bool:
    """Whether the effective capabilities in a `/proc/<pid>/status` text include one."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> number & 1)
