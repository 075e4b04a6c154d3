"""`python -m specdec_operator.cli`."""

import sys

from specdec_operator.cli.main import main

sys.exit(main())
