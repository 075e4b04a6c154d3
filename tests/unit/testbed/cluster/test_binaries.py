from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from testbed.cluster.binaries import Builder
from testbed.cluster.errors import BuildError
from testbed.cluster.processes import ProcessIdentity
from testbed.cluster.progress import SilentProgress
from testbed.cluster.tools import CONTROL_PLANE, HELM, NODE, PROMTOOL, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ETCD = CONTROL_PLANE[0]
WRITE = 'while [ "$1" != -o ]; do shift; done; echo built >> "$COUNTER"; echo binary > "$2"'


@pytest.fixture
def builder_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Builder]:
    """Make builders whose `go build` runs a shell script."""

    def make(script: str, **environment: str) -> Builder:
        go = tmp_path / "path" / "go"
        go.parent.mkdir(exist_ok=True)
        go.write_text(f'#!/bin/sh\n[ "$1" = version ] && echo go version go1.99.0 linux/amd64 && exit\n{script}\n')
        go.chmod(0o755)
        monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
        cache = tmp_path / "cache"
        (cache / "go" / "mod").mkdir(parents=True, exist_ok=True)
        settings = {"PATH": os.environ["PATH"], "COUNTER": str(tmp_path / "counter"), **environment}
        return Builder(cache=cache, environment=settings, progress=SilentProgress())

    return make


def builds(tmp_path: Path) -> int:
    counter = tmp_path / "counter"
    return len(counter.read_text().splitlines()) if counter.exists() else 0


def files(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "cache" / "bin").rglob("*") if path.is_file()]


def test_a_missing_binary_is_built_into_the_folder_of_its_modules_hash(builder_with: Callable[..., Builder]) -> None:
    path = builder_with(WRITE).ensure([ETCD])["etcd"]
    assert path.read_text() == "binary\n"
    assert path.parent.name == ETCD.directory_name()


def test_a_binary_that_is_present_is_not_built_again(builder_with: Callable[..., Builder], tmp_path: Path) -> None:
    builder_with(WRITE).ensure([ETCD])
    builder_with(WRITE).ensure([ETCD])
    assert builds(tmp_path) == 1


def test_a_failed_build_leaves_no_file(builder_with: Callable[..., Builder], tmp_path: Path) -> None:
    with pytest.raises(BuildError):
        builder_with(f"{WRITE}; exit 1").ensure([ETCD])
    assert files(tmp_path) == []


def test_a_failed_build_shows_the_end_of_its_output(builder_with: Callable[..., Builder]) -> None:
    with pytest.raises(BuildError, match=r"(?s)etcd .* ended with code 3:.*no such host"):
        builder_with("echo dial tcp: no such host; exit 3").ensure([ETCD])


def test_what_was_built_before_a_failure_stays(builder_with: Callable[..., Builder], tmp_path: Path) -> None:
    fails_for_kwok = f'case "$*" in *kwok*) exit 1;; esac; {WRITE}'
    with pytest.raises(BuildError):
        builder_with(fails_for_kwok).ensure(CONTROL_PLANE)
    assert sorted(files(tmp_path)) == sorted(tool.name for tool in CONTROL_PLANE if tool.name != "kwok")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell's background job inherits an ignored SIGINT, and so may the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_build_leaves_neither_file_nor_process(
    builder_with: Callable[..., Builder], tmp_path: Path
) -> None:
    interrupting = f'{WRITE}; echo $$ > "$COUNTER"; sleep 0.3; kill -INT $PPID; sleep 60'
    with pytest.raises(KeyboardInterrupt):
        builder_with(interrupting).ensure([ETCD])
    assert files(tmp_path) == []
    assert ProcessIdentity.of(int((tmp_path / "counter").read_text())) is None


def test_what_a_killed_build_left_goes_with_the_next(builder_with: Callable[..., Builder], tmp_path: Path) -> None:
    stale = tmp_path / "cache" / "bin" / ETCD.directory_name() / "kubectl.partial"
    stale.parent.mkdir(parents=True)
    stale.touch()
    builder_with(WRITE).ensure([ETCD])
    assert files(tmp_path) == ["etcd"]


def test_two_sessions_at_once_build_once(builder_with: Callable[..., Builder], tmp_path: Path) -> None:
    builder = builder_with(f"sleep 0.3; {WRITE}")
    sessions = [threading.Thread(target=builder.ensure, args=([ETCD],)) for _ in range(2)]
    for session in sessions:
        session.start()
    for session in sessions:
        session.join()
    assert builds(tmp_path) == 1


def test_gos_caches_are_dropped_after_a_build(builder_with: Callable[..., Builder], tmp_path: Path) -> None:
    builder_with(WRITE).ensure([ETCD])
    assert not (tmp_path / "cache" / "go").exists()


def test_gos_caches_are_kept_when_asked_for(builder_with: Callable[..., Builder], tmp_path: Path) -> None:
    builder_with(WRITE, SPECDEC_KEEP_GO_CACHE="1").ensure([ETCD])
    assert (tmp_path / "cache" / "go" / "mod").exists()


def test_a_failed_build_keeps_gos_caches(builder_with: Callable[..., Builder], tmp_path: Path) -> None:
    with pytest.raises(BuildError):
        builder_with("exit 1").ensure([ETCD])
    assert (tmp_path / "cache" / "go" / "mod").exists()


def test_envtests_binaries_are_used_where_they_are_provided(
    builder_with: Callable[..., Builder], tmp_path: Path
) -> None:
    provided = tmp_path / "assets" / "etcd"
    provided.parent.mkdir()
    provided.touch()
    builder = builder_with("exit 1", KUBEBUILDER_ASSETS=str(provided.parent))
    assert builder.ensure([ETCD])["etcd"] == provided


def test_what_envtest_does_not_provide_is_built(builder_with: Callable[..., Builder], tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    builder_with(WRITE, KUBEBUILDER_ASSETS=str(tmp_path / "assets")).ensure([ETCD])
    assert files(tmp_path) == ["etcd"]


def test_a_step_is_announced_before_the_build_ends(builder_with: Callable[..., Builder]) -> None:
    said: list[tuple[float, str]] = []

    class Recording(SilentProgress):
        def say(self, message: str) -> None:
            said.append((time.monotonic(), message))

    quiet = builder_with(f"sleep 0.3; {WRITE}")
    Builder(cache=quiet.cache, environment=quiet.environment, progress=Recording()).ensure([ETCD])
    assert time.monotonic() - said[0][0] > 0.3


@pytest.mark.parametrize("tool", [*CONTROL_PLANE, *NODE, *HELM, *PROMTOOL], ids=lambda tool: tool.name)
def test_every_tool_is_named_in_its_modules_tool_block(tool: Tool) -> None:
    assert tool.package in (tool.source / "go.mod").read_text()
