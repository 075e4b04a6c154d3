"""`make dev`: the operator's own process, restarted at edits of a copy of its code."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aiohttp
import pytest
import pytest_asyncio

from testbed.dev.reload import Reloader, changes_below, keep_reloading
from testbed.operator import OperatorProcess
from testbed.operator.chart import ROOT
from testbed.operator.install import grant_instance
from tests.integration.scene import configuration

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from testbed.cluster import Cluster

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

NAME = "reloaded"
SECONDS = 60.0
BROKEN = "def f(:\n"


@dataclass
class Session:
    """What happened while code was edited.

    Attributes:
        said: what the developer was told.
        broken: what the operator answered after the edit that does not compile.
        mended: what it answered after the edit that does.
    """

    said: list[str] = field(default_factory=list)
    broken: str = ""
    mended: str = ""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(operator_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("dev")
    source = folder / "operator"
    shutil.copytree(ROOT / "operator", source, ignore=shutil.ignore_patterns("__pycache__"))
    await asyncio.to_thread(grant_instance, operator_cluster, NAME)
    wanted = configuration(namespaces=[NAME], instance=f"specdec-system/{NAME}")
    operator = OperatorProcess(operator_cluster, wanted, folder / "run", source=source)
    seen = Session()
    reloader = Reloader(operator, say=seen.said.append)
    developing = asyncio.create_task(keep_reloading(reloader, changes_below(source), show_log=lambda: None))
    try:
        await operator.ready()
        await edit(source / "specdec_operator" / "health.py", operator, seen)
    finally:
        developing.cancel()
        with suppress(asyncio.CancelledError):
            await developing
        await asyncio.to_thread(operator.stop)
    return seen


async def edit(file: Path, operator: OperatorProcess, seen: Session) -> None:
    """Break a file, then mend it with another answer in it."""
    whole = rewrite(file, BROKEN)
    await until(lambda: len(seen.said) == 2)
    seen.broken = await health(operator)
    rewrite(file, whole.replace('trouble or "ok"', 'trouble or "edited"'))
    await until(lambda: len(seen.said) == 3)
    async with asyncio.timeout(SECONDS):
        while (answer := await health(operator)) in {"", "ok"}:  # noqa: ASYNC110 - the next process is waited for
            await asyncio.sleep(0.1)
    seen.mended = answer


def rewrite(file: Path, text: str) -> str:
    """Write a file, and return what it held."""
    before = file.read_text()
    file.write_text(text)
    return before


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - another task's file watcher is waited for
            await asyncio.sleep(0.05)


async def health(operator: OperatorProcess) -> str:
    with suppress(aiohttp.ClientError):
        async with aiohttp.ClientSession() as session, session.get(f"{operator.url}/healthz") as response:
            return await response.text()
    return ""


async def test_an_edit_that_does_not_compile_is_told_with_its_place(session: Session) -> None:
    assert "health.py:1: " in session.said[0]


async def test_an_edit_that_does_not_compile_leaves_the_operator_running(session: Session) -> None:
    assert session.broken == "ok"


async def test_the_next_edit_restarts_the_operator_with_the_new_code(session: Session) -> None:
    assert session.said[2] == "health.py changed: restarting the operator"
    assert session.mended == "edited"
