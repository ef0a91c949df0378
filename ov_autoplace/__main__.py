"""``python -m ov_autoplace`` is the same as the command ``ov-autoplace``."""

import sys

from ov_autoplace.cli import main

sys.exit(main())
