"""Builds the cluster's binaries from their Go modules into a cache, once.

A binary lies in `<cache>/bin/<module>-<hash of go.mod, go.sum and flags>/`. It is built under a temporary name in
that folder and renamed when it is whole, so an interrupted build leaves nothing that could be taken for one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from testbed.cluster.cache import exclusive
from testbed.cluster.errors import BuildError
from testbed.cluster.toolchain import find_go, required_version
from testbed.cluster.tools import ENVTEST_TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from testbed.cluster.progress import Progress
    from testbed.cluster.tools import Tool

ENVTEST_VARIABLE = "KUBEBUILDER_ASSETS"
KEEP_GO_CACHE_VARIABLE = "SPECDEC_KEEP_GO_CACHE"
OUTPUT_TAIL_LINES = 20
PARTIAL_SUFFIX = ".partial"

Binaries = MappingProxyType[str, Path]


@dataclass(frozen=True)
class Builder:
    """Where binaries are found and built.

    Attributes:
        cache: the testbed's cache directory.
        environment: the caller's environment (`KUBEBUILDER_ASSETS`, `SPECDEC_KEEP_GO_CACHE`, proxies).
        progress: where each step is announced.
    """

    cache: Path
    environment: Mapping[str, str]
    progress: Progress

    def ensure(self, tools: Sequence[Tool]) -> Binaries:
        """Return the path of each tool by its name, having built those that are missing.

        Raises:
            BuildError: `go build` failed.
            ToolchainError: something must be built and there is no Go.
        """
        if self._missing(tools):
            with exclusive(self.cache / "build.lock"):
                # Another session may have built them while this one waited.
                if missing := self._missing(tools):
                    self._build(missing)
        return MappingProxyType({tool.name: self._path(tool) for tool in tools})

    def _missing(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return [tool for tool in tools if not self._path(tool).exists()]

    def _path(self, tool: Tool) -> Path:
        provided = self.environment.get(ENVTEST_VARIABLE)
        if provided and tool.name in ENVTEST_TOOLS and (Path(provided) / tool.name).exists():
            return Path(provided) / tool.name
        return self.cache / "bin" / tool.directory_name() / tool.name

    def _build(self, tools: Sequence[Tool]) -> None:
        go = find_go(required_version({tool.source for tool in tools}), cache=self.cache, progress=self.progress)
        self.progress.say(f"{len(tools)} programs are to be built, once; all of a cluster's take 15 minutes on 2 cores")
        for number, tool in enumerate(tools, start=1):
            with self.progress.step(f"build {tool.name} ({number} of {len(tools)})"):
                self._build_one(tool, go)
        if not self.environment.get(KEEP_GO_CACHE_VARIABLE):
            with self.progress.step("drop Go's module and build caches, which nothing needs any more"):
                shutil.rmtree(self.cache / "go")

    def _build_one(self, tool: Tool, go: Path) -> None:
        target = self._path(tool)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Left by a build that was killed; the lock says that none is running.
        for stale in target.parent.glob(f"*{PARTIAL_SUFFIX}"):
            stale.unlink()
        partial = target.with_name(f"{tool.name}{PARTIAL_SUFFIX}")
        try:
            self._compile([str(go), "build", *tool.flags, "-o", str(partial), tool.package], tool=tool)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    def _compile(self, argv: Sequence[str], *, tool: Tool) -> None:
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                argv,
                cwd=tool.source,
                env=self._go_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait()
            finally:
                # Only when the wait was interrupted is there anything left: compilers and linkers.
                _kill_session(process)
            if code != 0:
                output.seek(0)
                raise BuildError(_explain(tool, code=code, output=output.read().decode(errors="replace")))

    def _go_environment(self) -> dict[str, str]:
        return {
            **self.environment,
            "CGO_ENABLED": "0",
            "GOCACHE": str(self.cache / "go" / "build"),
            "GOFLAGS": "-modcacherw",
            "GOMODCACHE": str(self.cache / "go" / "mod"),
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        }


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _explain(tool: Tool, *, code: int, output: str) -> str:
    tail = "\n".join(output.splitlines()[-OUTPUT_TAIL_LINES:])
    return (
        f"building {tool.name} from {tool.source} ended with code {code}:\n{tail}\n"
        "Check that a Go module proxy can be reached (GOPROXY), that 12 GB of disk and 4 GB of memory are free, "
        "and run it again: what is built already stays."
    )
