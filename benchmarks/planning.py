"""How long the pure core takes, and how long the command line takes for all examples.

    python -m benchmarks.planning [--rounds N]

Prints processor time for the pure core, as its median and its least, and the clock's for the command line. Timings are
of this machine: where both differ much, others were using it. Ends with 1 where a median exceeds LIMIT_MILLISECONDS.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel, parse
from specdec_operator.cli.documents import read_documents
from specdec_operator.cli.facts import read_facts_file
from specdec_operator.planning.admission import admit
from specdec_operator.planning.steps import ContentFacts, acquire_content
from specdec_operator.runtimes.table import CapabilityTable, load_table

if TYPE_CHECKING:
    from specdec_operator.resources.known import Known

LIMIT_MILLISECONDS = 1.0
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.yaml"))


def main() -> int:
    """Measure and print.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100, help="how often each model is planned")
    rounds = parser.parse_args().rounds
    table = load_table()
    took = {example.stem: planning_milliseconds(*read(example), table=table, rounds=rounds) for example in EXAMPLES}
    for name, (middle, least) in took.items():
        print(f"plan {name:32} {middle:7.3f} ms, least {least:7.3f} ms")
    slowest = max(took, key=lambda name: took[name])
    holds = took[slowest][0] < LIMIT_MILLISECONDS
    verdict = f"{'under' if holds else 'OVER'} the limit of {LIMIT_MILLISECONDS:g} ms"
    print(f"slowest plan: {slowest}, {took[slowest][0]:.3f} ms (least {took[slowest][1]:.3f}): {verdict}")
    print(f"specdec render of {len(EXAMPLES)} examples: {rendering_seconds():.2f} s")
    return 0 if holds else 1


def read(example: Path) -> tuple[SpeculativeModel, Known]:
    """An example and its facts."""
    (document,) = read_documents(str(example))
    return parse(document.content), read_facts_file(str(example.parent / "facts" / example.name))


def planning_milliseconds(
    model: SpeculativeModel, known: Known, *, table: CapabilityTable, rounds: int
) -> tuple[float, float]:
    """The median and the least processor time of one whole planning, from spec and facts to the plan."""
    configuration = OperatorConfiguration()
    facts = ContentFacts(models=dict(known.models), data_sets=known.data_sets)
    times = []
    for _ in range(rounds):
        began = time.process_time()
        resolution = admit(model, table=table, configuration=configuration)
        content = acquire_content(model.spec, resolution, configuration=configuration)
        content.pair(facts).serving(digests=known.engines, single_node=())
        times.append(time.process_time() - began)
    return median(times) * 1000, min(times) * 1000


def rendering_seconds() -> float:
    """The median time of `specdec render` for all examples at once, in processes of their own."""
    command = [sys.executable, "-m", "specdec_operator.cli", "render", "--facts", str(EXAMPLES[0].parent / "facts")]
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([*command, *map(str, EXAMPLES)], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return median(times)


if __name__ == "__main__":
    raise SystemExit(main())
