"""`python -m testbed.demo`: the example models from `kubectl apply` to served answers."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cluster import RealNodeUnavailableError, TerminalProgress, TestbedError
from testbed.demo.screen import Screen
from testbed.demo.served import serve
from testbed.demo.unproven import show_unproven
from testbed.demo.users_cluster import serve_on
from testbed.runtime.errors import ImageBuildError

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = Path(__file__).parents[2] / "examples" / "demo"
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if (chosen.kubeconfig is None) != (chosen.address is None):
        parser.error(
            "--kubeconfig and --address go together: a cluster of yours, and where its pods reach this machine"
        )
    screen = Screen(sys.stdout)
    # SIGTERM unwinds as Ctrl-C does, so that everything is stopped; a shell's background job ignores Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    try:
        _run(chosen, screen)
    except KeyboardInterrupt:
        screen.say("interrupted: everything is stopped")
        return INTERRUPTED
    except (TestbedError, ImageBuildError) as error:
        print(f"\ndemo: {error}", file=sys.stderr)
        return 1
    return 0


def _run(chosen: argparse.Namespace, screen: Screen) -> None:
    progress = TerminalProgress(sys.stdout)
    if chosen.kubeconfig is not None:
        screen.wrapped("specdec demo: your cluster, the operator in it, and models that come to serve.", indent="")
        serve_on(
            chosen.kubeconfig,
            chosen.models,
            address=chosen.address,
            keep=chosen.keep,
            screen=screen,
            progress=progress,
        )
        return
    screen.wrapped(
        "specdec demo: a Kubernetes cluster on this machine, the operator, and models that come to serve.", indent=""
    )
    try:
        serve(chosen.models, keep=chosen.keep, screen=screen, progress=progress)
    except RealNodeUnavailableError as error:
        show_unproven(chosen.models, reason=str(error), keep=chosen.keep, screen=screen, progress=progress)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m testbed.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the cluster running until Ctrl-C")
    parser.add_argument("--models", type=Path, default=EXAMPLES, help="SpeculativeModels to apply, file or folder")
    parser.add_argument("--kubeconfig", type=Path, help="use this cluster of yours; with --address (docs/testbed.md)")
    parser.add_argument("--address", help="address of this machine that its pods reach, for the model hub")
    return parser


if __name__ == "__main__":
    sys.exit(main())
