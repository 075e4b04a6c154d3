"""How long the pure core takes, and how long the command line takes for all examples.

    python -m benchmarks.planning [--rounds N]

Prints medians; timings are of this machine, so compare ratios of one run.
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
from specdec_operator.planning.acquire import acquire
from specdec_operator.planning.admission import admit
from specdec_operator.planning.calibration import acquire_texts
from specdec_operator.planning.engines import plan_engines
from specdec_operator.planning.plan import plan_serving
from specdec_operator.runtimes.table import CapabilityTable, load_table

if TYPE_CHECKING:
    from specdec_operator.resources.known import Known

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.yaml"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="how often each model is planned")
    rounds = parser.parse_args().rounds
    table = load_table()
    slowest = 0.0
    for example in EXAMPLES:
        (document,) = read_documents(str(example))
        known = read_facts_file(str(example.parent / "facts" / example.name))
        took = planning_milliseconds(parse(document.content), known, table, rounds=rounds)
        slowest = max(slowest, took)
        print(f"plan {example.stem:32} {took:7.3f} ms")
    print(f"slowest plan: {slowest:.3f} ms")
    print(f"specdec render of {len(EXAMPLES)} examples: {rendering_seconds():.2f} s")


def planning_milliseconds(model: SpeculativeModel, known: Known, table: CapabilityTable, *, rounds: int) -> float:
    """The median time of one whole planning, from spec and facts to the plan."""
    configuration = OperatorConfiguration()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        resolution = admit(model, table=table, configuration=configuration)
        models = acquire(model.spec, resolution, configuration=configuration)
        texts = acquire_texts(model.spec, resolution, configuration=configuration)
        places = {request.role: request.yields for request in (*models, *texts) if request.yields}
        facts = dict(known.models)
        engines = plan_engines(model.spec, resolution, facts=facts, models=places, data_sets=known.data_sets)
        plan_serving(model.spec, resolution, facts=facts, models=models, engines=engines, engine_digests=known.engines)
        times.append(time.perf_counter() - began)
    return median(times) * 1000


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
    main()
