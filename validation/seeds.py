"""Common parts of runs over many seeds: command line options, and a pool of processes."""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import records


def add_arguments(parser: argparse.ArgumentParser, count: int) -> None:
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    parser.add_argument("--commit", default=os.environ.get("SMEMKERN_COMMIT"))


def in_parts(
    work: Callable[..., Any], options: argparse.Namespace, together: int, *more: object
) -> list[Any]:
    """Results of work(seeds, *more) for chunks of seeds, in the order of the seeds."""
    end = options.seed + options.count
    starts = range(options.seed, end, together)
    parts = [(range(first, min(first + together, end)), *more) for first in starts]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        return pool.starmap(work, parts, chunksize=1)
