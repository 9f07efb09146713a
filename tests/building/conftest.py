"""Lets these tests import buildtools/ from the clone without hiding the installed smemkern."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))
