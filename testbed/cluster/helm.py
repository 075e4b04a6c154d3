"""Helm, built like the cluster's own programs, and kept away from the user's own configuration of it."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cluster.binaries import Builder
from testbed.cluster.cache import cache_directory
from testbed.cluster.commands import SHORT_LIVED, run
from testbed.cluster.tools import HELM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testbed.cluster.progress import Progress


@dataclass(frozen=True)
class Helm:
    """A Helm with no repositories, plugins or registry logins.

    Attributes:
        program: the binary.
        home: a folder for its cache and configuration.
        kubeconfig: the cluster that it works on; None for commands that need none.
    """

    program: Path
    home: Path
    kubeconfig: Path | None = None

    def run(self, *arguments: str) -> str:
        """Run a command and return what it prints.

        Raises:
            CommandError: with its error output.
        """
        homes = {f"HELM_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        chosen = {"KUBECONFIG": str(self.kubeconfig or os.devnull)}
        return run([str(self.program), *arguments], environment=homes | chosen | SHORT_LIVED)


@contextmanager
def built_helm(progress: Progress, *, kubeconfig: Path | None = None) -> Iterator[Helm]:
    """Helm, built if it is missing; its folder goes with the body.

    Raises:
        BuildError: it could not be built.
        ToolchainError: it must be built, and there is no Go.
    """
    program = Builder(cache=cache_directory(), environment=os.environ, progress=progress).ensure(HELM)["helm"]
    with tempfile.TemporaryDirectory(prefix="specdec-helm-") as home:
        yield Helm(program, Path(home), kubeconfig)
