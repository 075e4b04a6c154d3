"""The frame of every program: read the input, do the work, leave a termination message and an exit code."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from specdec_operator.pod.errors import Interrupted, ProgramFailure
from specdec_operator.pod.input_file import InputType, read_input
from specdec_operator.pod.termination import Failed, Outcome, Succeeded, encode, exit_code

DEFAULT_TERMINATION_LOG = "/dev/termination-log"
_INTERRUPTION_SECONDS = 10


def run(
    kind: type[InputType], work: Callable[[InputType], Mapping[str, Any]], *, arguments: Sequence[str] | None = None
) -> int:
    """Run a program and report its outcome through the termination message.

    Args:
        kind: the input's document.
        work: the program; its result goes into the message.
        arguments: the command line's, without the program's name.

    Returns:
        The exit code: 0 done, 1 may be retried, 3 terminal.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    outcome, text = _outcome(kind, work, sys.argv[1:] if arguments is None else arguments)
    # an outcome that is already known must not be lost to a late signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.alarm(0)
    _report(outcome, text)
    return exit_code(outcome)


def _outcome(
    kind: type[InputType], work: Callable[[InputType], Mapping[str, Any]], arguments: Sequence[str]
) -> tuple[Outcome, str]:
    try:
        outcome: Outcome = Succeeded(work(read_input(kind, arguments)))
        return outcome, encode(outcome)
    except ProgramFailure as failure:
        outcome = Failed(failure.reason, failure.message, failure.terminal)
    except Exception as error:  # noqa: BLE001 - the task's boundary: whatever happened must reach the operator
        traceback.print_exc()
        outcome = Failed("ProgramError", f"{type(error).__name__}: {error}", terminal=False)
    return outcome, encode(outcome)


def _report(outcome: Outcome, text: str) -> None:
    path = os.environ.get("SPECDEC_TERMINATION_LOG") or DEFAULT_TERMINATION_LOG
    if isinstance(outcome, Failed):
        print(f"{outcome.reason}: {outcome.message}", file=sys.stderr, flush=True)
    try:
        Path(path).write_text(text, encoding="ascii")
    except OSError as error:
        print(f"the termination message can't be written to {path}: {error}", file=sys.stderr, flush=True)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    # threads of a library may hold the main thread up for longer than the kubelet waits
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(_INTERRUPTION_SECONDS)
    raise Interrupted


def _give_up(_number: int, _frame: object) -> NoReturn:
    interrupted = Interrupted()
    outcome = Failed(interrupted.reason, interrupted.message, interrupted.terminal)
    _report(outcome, encode(outcome))
    os._exit(exit_code(outcome))
