"""`python -m specdec_operator.cli`, and the program `specdec`."""

from __future__ import annotations

import io
import signal
import sys

from specdec_operator.cli.main import main


def run() -> None:
    """Run the command line as a process of its own: it ends silently where nobody reads on, as kubectl does."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # YAML is UTF-8 in any language, and the name of a file need not be text.
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")
    sys.exit(main())


if __name__ == "__main__":
    run()
