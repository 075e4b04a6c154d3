"""Run a program as a pod does: from the ConfigMap's files, without the package around them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.pod.sources import mount_items, program_files
from specdec_operator.pod.termination import Outcome, decode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from specdec_operator.pod.document import Document


@dataclass(frozen=True)
class ShippedProgram:
    """A program laid out under `directory` as the ConfigMap volume lays it out."""

    name: str
    directory: Path

    @classmethod
    def lay_out(cls, name: str, directory: Path) -> ShippedProgram:
        """Write the program's files."""
        files = program_files(name)
        for item in mount_items(files):
            path = directory / "program" / item.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[item.key])
        return cls(name, directory)

    @property
    def termination_log(self) -> Path:
        """Where the program leaves its termination message."""
        return self.directory / "termination-log"

    def outcome(self) -> Outcome:
        """The outcome that the last run left."""
        return decode(self.termination_log.read_text())

    def start(self, given: Document, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start the program in a process of its own, in a clean environment without installed packages."""
        input_file = self.directory / "input.json"
        input_file.write_text(given.to_json())
        return subprocess.Popen(
            [sys.executable, "-S", str(self.directory / "program"), self.name, str(input_file)],
            env={
                "PATH": os.environ["PATH"],
                "SPECDEC_TERMINATION_LOG": str(self.termination_log),
                **(environment or {}),
            },
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, given: Document, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run the program to its end; its exit code and all that it wrote."""
        with self.start(given, environment) as process:
            output, _ = process.communicate(timeout=60)
        return process.returncode, output
