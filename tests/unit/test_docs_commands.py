"""The sessions of docs/commands.md, run: what is printed, on both streams, is what is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SESSION = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (?P<line>.*?(?:<<EOF\n(?:.*\n)*?EOF)?)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
HASH = re.compile(r"\b[0-9a-f]{10}\b")


@dataclass(frozen=True)
class Session:
    """Commands that follow one another."""

    commands: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Its first line."""
        return self.commands[0][0].partition("\n")[0]


def _sessions() -> list[Session]:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    return [
        Session(tuple((found["line"], found["output"]) for found in COMMAND.finditer(session)))
        for session in SESSION.findall(text)
    ]


SESSIONS = _sessions()


@pytest.mark.parametrize("session", SESSIONS, ids=[session.name for session in SESSIONS])
def test_a_session_prints_what_is_shown(session: Session, tmp_path: Path) -> None:
    program = tmp_path / "specdec"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m specdec_operator.cli "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", "-c", "\n".join(line for line, _ in session.commands)],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "operator")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

    # Names carry hashes of programs that change with every edit.
    assert HASH.sub("…", done.stdout) == HASH.sub("…", "".join(output for _, output in session.commands))


def test_every_session_has_a_command() -> None:
    assert len(SESSIONS) >= 5
    assert all(session.commands for session in SESSIONS)
