"""What a model's way to serving asks of the API server, and what it asks at rest.

    python -m benchmarks.requests

Starts a control plane whose pods are played, runs the operator in this process, and applies one model after the other.
Prints counts, which do not depend on the machine but for what happens to come together.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from testbed.cluster import ClusterOptions, KwokNodes, TerminalProgress, running_cluster
from testbed.operator import install, operator_in_process
from testbed.operator.metrics import READS, UNCOUNTED
from tests.integration.scene import PRODUCT, baseline, configuration, draft_target, eagle3, stage

if TYPE_CHECKING:
    from testbed.cluster import Cluster
    from testbed.operator.metrics import Requests

MODELS = {"target-alone": baseline(), "eagle3": eagle3(), "draft-target": draft_target()}
SETTLE_SECONDS = 5.0
REST_SECONDS = 30.0
MOST_FREQUENT = 6


def main() -> int:
    """Count and print.

    Returns:
        The exit code: 1 if anything was written at rest.
    """
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    options = ClusterOptions(kwok_nodes=KwokNodes(count=2, gpus=8, product=PRODUCT))
    with running_cluster(options, progress=TerminalProgress(sys.stderr)) as cluster:
        install(cluster)
        written = asyncio.run(count(cluster))
    return 1 if written else 0


async def count(cluster: Cluster) -> dict[str, int]:
    """Bring up the models, print what each asked; return what was written at rest, by verb and resource."""
    async with (
        stage(cluster) as made,
        operator_in_process(cluster, configuration(), prover=made.prover) as operator,
    ):
        for name, spec in MODELS.items():
            scene = await made.scene(name)
            before = await operator.requests()
            await scene.apply(name, spec)
            await scene.until_ready(name)
            await asyncio.sleep(SETTLE_SECONDS)
            print(f"{name:14} {told((await operator.requests()).since(before))}", flush=True)
        before = await operator.requests()
        await asyncio.sleep(REST_SECONDS)
        rest = (await operator.requests()).since(before)
        print(f"{'at rest':14} {told(rest)}, in {REST_SECONDS:g} s")
        return rest.writes()


def told(requests: Requests) -> str:
    """How many reads and writes, and which most; the leader's Lease and reviews are not counted."""
    counts: dict[str, int] = {}
    for (verb, plural, _code), number in requests.counts.items():
        if plural not in UNCOUNTED:
            counts[f"{verb} {plural}"] = counts.get(f"{verb} {plural}", 0) + number
    reads = sum(number for name, number in counts.items() if name.split()[0] in READS)
    most = sorted(counts.items(), key=lambda item: -item[1])[:MOST_FREQUENT]
    shown = ", ".join(f"{name} {number}" for name, number in most)
    return f"{reads} reads, {sum(counts.values()) - reads} writes ({shown or 'nothing'})"


if __name__ == "__main__":
    raise SystemExit(main())
