"""`python -m specdec_operator`: the operator's process."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from specdec_operator.api.configuration import ConfigurationError, OperatorConfiguration, read_configuration
from specdec_operator.app import Surroundings, run_operator
from specdec_operator.cluster.errors import ClusterError
from specdec_operator.cluster.login import load_credentials
from specdec_operator.runtimes.table import TableError

_log = logging.getLogger("specdec_operator")
_PLAIN_FIELDS = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """One JSON object per line, with the fields given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {k: v for k, v in record.__dict__.items() if k not in _PLAIN_FIELDS and k[:5] != "k8s_s"}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def main() -> int:
    """Read the configuration and run until SIGTERM or SIGINT; the exit code."""
    options = _options()
    _log_to_stderr(verbose=options.verbose)
    try:
        configuration = read_configuration(options.config, instance=options.instance)
        asyncio.run(_run(configuration, options))
    except (ClusterError, TableError, ConfigurationError) as error:
        _log.error("%s", error)
        return 1
    return 0


async def _run(configuration: OperatorConfiguration, options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await run_operator(
        Surroundings(
            credentials=load_credentials(environ=os.environ, kubeconfig=options.kubeconfig),
            configuration=configuration,
            stop=stop,
            host=options.host,
            port=options.port,
        )
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m specdec_operator", description=__doc__)
    parser.add_argument("--config", type=Path, help="the operator's configuration (YAML)")
    parser.add_argument("--instance", help="NAMESPACE/NAME of this operator, in place of the configuration's")
    parser.add_argument("--kubeconfig", type=Path, help="a kubeconfig; in a cluster the service account is used")
    parser.add_argument("--host", default="0.0.0.0", help="where health and metrics listen")  # noqa: S104 - kubelet's probes
    parser.add_argument("--port", type=int, default=8080, help="the port of health and metrics")
    parser.add_argument("--verbose", action="store_true", help="log what the libraries say, too")
    return parser.parse_args()


def is_news(record: logging.LogRecord) -> bool:
    """Whether a line is more than kopf's word that a further try of a watch was forbidden, too."""
    if not record.name.startswith("kopf"):
        return True
    said = record.getMessage()
    return "APIForbiddenError" not in said or said.startswith("Request attempt #1 ")


def _log_to_stderr(*, verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler], force=True)
    if not verbose:
        logging.getLogger("kopf").setLevel(logging.WARNING)
        handler.addFilter(is_news)


if __name__ == "__main__":
    sys.exit(main())
