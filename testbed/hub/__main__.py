"""Run the hub: `python -m testbed.hub`."""

import argparse
import signal
import sys
from pathlib import Path

from testbed.hub.errors import HubError
from testbed.hub.server import REPOSITORIES_FILE, Hub


def main() -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m testbed.hub", description="Serve the testbed's tiny models.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one")
    parser.add_argument("--repositories", type=Path, default=REPOSITORIES_FILE, help="YAML file of repositories")
    parser.add_argument("--list", action="store_true", help="print repositories, names and commits, and end")
    arguments = parser.parse_args()
    try:
        hub = Hub.from_file(arguments.repositories)
        if arguments.list:
            _list(hub)
            return 0
        # Blocked before the thread starts, so that only sigwait below gets them.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        print(f"hub: {hub.start(arguments.host, arguments.port)}", flush=True)
    except (HubError, OSError) as error:
        print(f"hub: {error}", file=sys.stderr)
        return 1
    signal.sigwait({signal.SIGINT, signal.SIGTERM})
    hub.stop()
    return 0


def _list(hub: Hub) -> None:
    for repository in hub.catalogue.repositories.values():
        for name, commit in repository.names.items():
            print(f"{repository.name}@{name} {commit}{' (gated)' if repository.gated else ''}")


if __name__ == "__main__":
    sys.exit(main())
