"""What runs under ncu: makes the one call that smemkern.profile has written into a file."""

import pickle
import sys
from pathlib import Path

import smemkern

what, args, kw = pickle.loads(Path(sys.argv[1]).read_bytes())
if isinstance(what, str):
    getattr(smemkern, what)(*args, **kw)
else:
    smemkern.Kernel(*what)(*args, **kw)
