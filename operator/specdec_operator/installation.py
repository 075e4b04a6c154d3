"""`python -m specdec_operator.installation URL`: whether an installed operator is ready, and leads.

The pod of `helm test` runs it. It asks the operator's health and metrics server, as a user would with curl, and tells
what is missing in the operator's own words.
"""

from __future__ import annotations

import argparse
import sys
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ANSWER_SECONDS: Final = 5.0
_LOOK_AGAIN_SECONDS: Final = 2.0
_LEADS: Final = "leader_election_master_status{"


class NotInstalled(Exception):  # noqa: N818 - it is what was found
    """The operator is not ready; the message says why, and what to do."""


def check(url: str) -> None:
    """Ask once.

    Args:
        url: Of the operator's health and metrics server, without a path.

    Raises:
        NotInstalled: It does not answer, or is not ready.
    """
    _read(f"{url}/readyz")
    metrics = _read(f"{url}/metrics").splitlines()
    leaders = [line for line in metrics if line.startswith(_LEADS)]
    # With several pods the Service may have led to one that waits: it is ready, and another one leads.
    if not leaders and not any(line.startswith("rest_client_requests_total{") for line in metrics):
        raise NotInstalled(f"{url}/metrics: these are not the operator's metrics: does the Service select its pods?")


def _read(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as response:  # noqa: S310 - the chart gives the URL
            text: str = response.read().decode()
            return text
    except urllib.error.HTTPError as error:
        raise NotInstalled(f"{url}: {error.read().decode(errors='replace') or error}") from error
    except (OSError, HTTPException) as error:
        raise NotInstalled(f"{url}: {error}: are the operator's pods running, and may this pod reach them?") from error


def wait(
    url: str,
    *,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Ask until the answer is good.

    Raises:
        NotInstalled: It was not within the seconds; the last reason.
    """
    deadline = clock() + seconds
    while True:
        try:
            return check(url)
        except NotInstalled:
            if clock() >= deadline:
                raise
            sleep(_LOOK_AGAIN_SECONDS)


def main(argv: Sequence[str] | None = None) -> int:
    """Check an installation; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m specdec_operator.installation", description=__doc__)
    parser.add_argument("url", help="the operator's health and metrics server, as in http://NAME.NAMESPACE.svc:8080")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to wait for it")
    arguments = parser.parse_args(argv)
    try:
        wait(arguments.url.rstrip("/"), seconds=arguments.seconds)
    except NotInstalled as found:
        sys.stderr.write(f"{found}\n")
        return 1
    sys.stdout.write("the operator is ready\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
