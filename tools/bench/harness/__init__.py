"""What all sections are made with: one result type, processes of their own, races, comparisons, reports.

Importing it makes the helpers of ``tools/`` and ``tests/`` importable.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
ROOT = BENCH.parents[1]
GRAPHS = ROOT / "tests" / "data" / "dnn-partitioning"

os.environ.setdefault("AUTOPLACE_CACHE", "NO")  # every decision is made anew
sys.path += [folder for folder in map(str, (ROOT / "tools", ROOT / "tests")) if folder not in sys.path]
