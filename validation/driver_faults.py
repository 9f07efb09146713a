"""Each call of the driver fails, at each place: the long form of tests/cuda/test_faults.py.

    python validation/driver_faults.py [--results FOLDER]

On the fake driver, a process for each failing call. Writes FOLDER/driver-faults.json: how many
calls failed of each operation with each result, and what went wrong.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import records

TESTS = records.ROOT / "tests"
CUDA = TESTS / "cuda"
sys.path += [str(CUDA), str(TESTS), str(records.ROOT)]

from cuda_build import build_driver  # noqa: E402
from test_faults import ALL_RESULTS, OPERATIONS  # noqa: E402

from checks import environment  # noqa: E402


def run(library: Path, operation: str, result: int) -> tuple[int, str]:
    """How many calls failed, one in each process, and what was wrong."""
    command = [sys.executable, CUDA / "fake_faults.py", operation, str(result)]
    own = environment(TESTS, LD_LIBRARY_PATH=library.parent)
    done = subprocess.run(command, env=own, capture_output=True, text=True)
    *wrong, last = (done.stdout + done.stderr).splitlines() or [""]
    reached = re.match(rf"{operation}: (\d+) calls failed", last)
    return (int(reached[1]) if reached else 0), "\n".join(wrong if reached else [*wrong, last])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    options = parser.parse_args()
    started = time.monotonic()
    calls: dict[str, dict[str, int]] = {}
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "libcuda.so.1")
        build_driver(Path(folder))
        for operation in OPERATIONS:
            for result in ALL_RESULTS:
                reached, wrong = run(library, operation, result)
                calls.setdefault(operation, {})[str(result)] = reached
                if wrong or reached < 50:
                    failed.append({"operation": operation, "result": result, "said": wrong[:2000]})
            print(operation, calls[operation], flush=True)
    seconds = round(time.monotonic() - started)
    record = {**records.facts(), "seconds": seconds, "calls": calls, "failed": failed}
    records.write(options.results / "driver-faults.json", record)
    print(f"{sum(sum(each.values()) for each in calls.values())} calls failed, {len(failed)} wrong")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
