"""`python -m testbed.dev`: a cluster, and the operator beside it, restarted at each edit of its code."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from typing import TYPE_CHECKING

from testbed.cluster import ClusterOptions, RealNode, RealNodeUnavailableError, TerminalProgress, TestbedError
from testbed.cluster.cache import cache_directory
from testbed.cluster.lifecycle import running_cluster
from testbed.cluster.requirements import require_node_programs
from testbed.demo.unproven import played_cluster, played_configuration, played_jobs
from testbed.dev.reload import Reloader, changes_below, keep_reloading
from testbed.operator import OperatorProcess, install
from testbed.operator.log_text import FollowedLog
from testbed.played_releases import other_releases
from testbed.runtime.build import build_image
from testbed.runtime.errors import ImageBuildError
from testbed.session import GPUS, PRODUCT, configuration, running_hub, simulator_release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from testbed.cluster import Cluster, Progress

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until Ctrl-C; returns the exit code."""
    argparse.ArgumentParser(prog="python -m testbed.dev", description=__doc__).parse_args(arguments)
    # SIGTERM unwinds as Ctrl-C does, so that everything is stopped; a shell's background job ignores Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    progress = TerminalProgress(sys.stdout)
    try:
        _develop(progress)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (TestbedError, ImageBuildError) as error:
        print(f"\ndev: {error}", file=sys.stderr)
        return 1
    return 0


def _develop(progress: Progress) -> None:
    try:
        require_node_programs(progress)
    except RealNodeUnavailableError as error:
        progress.say(f"No real node: {error}. Nodes, GPUs and pods are played: models end at Served=Unknown.")
        with played_cluster(progress=progress) as cluster:
            asyncio.run(_operate(cluster, played_configuration(), progress=progress, played=True))
        return
    image = build_image(cache=cache_directory(), progress=progress.say)
    node = RealNode(gpus=GPUS, product=PRODUCT, images=[image.archive])
    options = ClusterOptions(kwok_nodes=None, real_node=node)
    with running_cluster(options, progress=progress) as cluster, running_hub(cluster) as hub:
        with progress.step("install the CRDs and the operator's rights"):
            install(cluster)
        rows = [simulator_release(image.reference), *other_releases()]
        asyncio.run(_operate(cluster, configuration(rows, endpoint=hub.url), progress=progress, played=False))


async def _operate(cluster: Cluster, wanted: OperatorConfiguration, *, progress: Progress, played: bool) -> None:
    operator = OperatorProcess(cluster, wanted, cluster.directory / "operator")
    log = FollowedLog(operator.log)

    def show_log() -> None:
        for line in log.new_lines():
            progress.say(line)

    progress.say(
        "In another terminal:\n"
        f"  export KUBECONFIG={cluster.kubeconfig}\n"
        f"  {cluster.kubectl_program} apply -f examples/demo\n"
        f"The operator runs here; it restarts when a file below {operator.source} changes. Ctrl-C ends all of it."
    )
    try:
        async with played_jobs(cluster) if played else contextlib.nullcontext():
            await keep_reloading(
                Reloader(operator, say=lambda line: progress.say(f"dev: {line}")),
                changes_below(operator.source),
                show_log=show_log,
            )
    finally:
        operator.stop()


if __name__ == "__main__":
    sys.exit(main())
