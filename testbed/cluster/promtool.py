"""Prometheus' promtool, built like the cluster's own programs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.cluster.binaries import Builder
from testbed.cluster.cache import cache_directory
from testbed.cluster.commands import SHORT_LIVED, run
from testbed.cluster.tools import PROMTOOL

if TYPE_CHECKING:
    from pathlib import Path

    from testbed.cluster.progress import Progress


@dataclass(frozen=True)
class Promtool:
    """Prometheus' own judge of rules.

    Attributes:
        program: the binary.
    """

    program: Path

    def check_rules(self, rules: Path) -> str:
        """Parse a file of rules as the server does, and return what was found.

        Raises:
            CommandError: a rule is wrong, or there twice; with what promtool says.
        """
        return run(
            [str(self.program), "check", "rules", "--lint=all", "--lint-fatal", str(rules)], environment=SHORT_LIVED
        )

    def play(self, played: Path) -> str:
        """Play a file of series over the rules that it names, and compare what follows.

        Raises:
            CommandError: something else follows than the file says; with what promtool says.
        """
        return run([str(self.program), "test", "rules", str(played)], environment=SHORT_LIVED)


def built_promtool(progress: Progress) -> Promtool:
    """Promtool, built if it is missing.

    Raises:
        BuildError: it could not be built.
        ToolchainError: it must be built, and there is no Go.
    """
    builder = Builder(cache=cache_directory(), environment=os.environ, progress=progress)
    return Promtool(builder.ensure(PROMTOOL)["promtool"])
