"""`python -m testbed.cluster`: build the binaries, run a cluster in the foreground, sweep what dead ones left."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cluster.binaries import Builder
from testbed.cluster.cache import cache_directory
from testbed.cluster.cluster import ClusterOptions
from testbed.cluster.errors import TestbedError
from testbed.cluster.kwok import KwokNodes
from testbed.cluster.lifecycle import clean, running_cluster
from testbed.cluster.node import RealNode
from testbed.cluster.progress import TerminalProgress
from testbed.cluster.tools import CONTROL_PLANE, HELM, NODE, PROMTOOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testbed.cluster.progress import Progress

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    progress = TerminalProgress(sys.stdout)
    # SIGTERM unwinds as Ctrl-C does, so that the cluster is stopped; a shell's background job ignores Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    try:
        _run(chosen, progress=progress)
    except KeyboardInterrupt:
        return INTERRUPTED
    except TestbedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(chosen: argparse.Namespace, *, progress: Progress) -> None:
    match chosen.command:
        case "build":
            tools = [
                *CONTROL_PLANE,
                *(NODE if chosen.node else ()),
                *(HELM if chosen.helm else ()),
                *(PROMTOOL if chosen.promtool else ()),
            ]
            builder = Builder(cache=cache_directory(), environment=os.environ, progress=progress)
            for name, path in builder.ensure(tools).items():
                progress.say(f"{name}: {path}")
        case "up":
            _up(chosen, progress=progress)
        case _:
            clean(progress=progress)


def _up(chosen: argparse.Namespace, *, progress: Progress) -> None:
    played = (0 if chosen.real_node else KwokNodes.count) if chosen.kwok_nodes is None else chosen.kwok_nodes
    kwok_nodes = KwokNodes(count=played, gpus=chosen.gpus, product=chosen.product)
    real_node = RealNode(gpus=chosen.gpus, product=chosen.product, images=chosen.image)
    options = ClusterOptions(
        kwok_nodes=kwok_nodes if kwok_nodes.count else None,
        real_node=real_node if chosen.real_node else None,
    )
    if chosen.name:
        options = replace(options, name=chosen.name)
    with running_cluster(options, progress=progress) as cluster:
        progress.say(f"export KUBECONFIG={cluster.kubeconfig}\nCtrl-C stops the cluster")
        threading.Event().wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m testbed.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the binaries that are missing")
    build.add_argument("--node", action="store_true", help="those of the real node too")
    build.add_argument("--helm", action="store_true", help="Helm too")
    build.add_argument("--promtool", action="store_true", help="Prometheus' promtool too")
    up = commands.add_parser("up", help="run a cluster until Ctrl-C")
    up.add_argument("--name", default="", help="name of the cluster (default: a new one)")
    up.add_argument("--real-node", action="store_true", help="with a node that runs pods; needs root")
    up.add_argument(
        "--image", type=Path, action="append", default=[], help="image archive for the real node (repeatable)"
    )
    up.add_argument("--kwok-nodes", type=int, help="nodes that kwok plays (default: 2, or 0 beside a real one)")
    up.add_argument("--gpus", type=int, default=KwokNodes.gpus, help="nvidia.com/gpu of each node")
    up.add_argument("--product", default=KwokNodes.product, help="their label nvidia.com/gpu.product")
    commands.add_parser("clean", help="sweep what clusters of dead owners left")
    return parser


if __name__ == "__main__":
    sys.exit(main())
