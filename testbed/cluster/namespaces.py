"""The mount, network and process namespaces of a real node, held by an anchor process."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cluster.commands import run
from testbed.cluster.processes import Program, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testbed.cluster.processes import Programs

ANCHOR = Path(__file__).parent / "anchor.py"
# Mounted over in the namespaces, so it must be there outside.
KUBELET_DIRECTORY = Path("/var/lib/kubelet")
START_SECONDS = 20.0


@dataclass(frozen=True)
class Namespaces:
    """Running namespaces.

    Attributes:
        holder: process id, on the host, of the `unshare` that made them and stays.
    """

    holder: int

    @classmethod
    def start(cls, directory: Path, *, programs: Programs) -> Namespaces:
        """Make the namespaces and wait until they are laid out.

        Raises:
            NotReadyError: they were not in time.
            ProgramError: the anchor ended.
        """
        KUBELET_DIRECTORY.mkdir(parents=True, exist_ok=True)
        unshare = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc")
        argv = (*unshare, sys.executable, "-I", str(ANCHOR), str(directory))
        holder = programs.start(Program(name="anchor", argv=argv))
        wait_until(
            (directory / "anchored").exists,
            what="the node's namespaces",
            seconds=START_SECONDS,
            programs=programs,
        )
        return cls(holder=holder)

    def entering(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs `argv` inside all of them."""
        kernel = f"/proc/{self.holder}/ns"
        # The holder itself stays outside of the process namespace that it made for its child.
        inside = (f"--mount={kernel}/mnt", f"--net={kernel}/net", f"--pid={kernel}/pid_for_children")
        return ("nsenter", *inside, "--", *argv)

    def program(self, name: str, argv: Sequence[str]) -> Program:
        """Return a program to run inside."""
        return Program(name=name, argv=self.entering(argv))

    def run(self, argv: Sequence[str]) -> str:
        """Run a command inside and return its output.

        Raises:
            CommandError: the command failed.
        """
        return run(self.entering(argv))
