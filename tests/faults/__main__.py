"""Kills each job many times: ``python -m tests.faults --kills 100``. Exit status 1 means lost or incomplete files."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a forked child has a single thread
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in (".", "support")]

from faults.kills import JOBS, Kills, kill  # noqa: E402

CLUSTER = "cluster"


def kill_any(job: str, n: int, folder: Path, seed: int) -> Kills:
    if job != CLUSTER:
        return kill(job, n, folder, seed)
    from faults.cluster import kill_cluster  # needs Dask

    return kill_cluster(job, n, folder, seed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Processes killed at any moment.")
    parser.add_argument("jobs", nargs="*", help=f"some of {', '.join([*JOBS, CLUSTER])} [all]")
    parser.add_argument("--kills", type=int, default=100, help="of each job [100]")
    parser.add_argument("--seed", type=int, help="of the moments [by the clock]")
    options = parser.parse_args()
    jobs = options.jobs or [*JOBS, CLUSTER]
    if unknown := set(jobs) - {*JOBS, CLUSTER}:
        parser.error(f"unknown job {min(unknown)}; there is {', '.join([*JOBS, CLUSTER])}")
    seed = int(time.time()) if options.seed is None else options.seed
    n_findings = 0
    for job in jobs:
        with tempfile.TemporaryDirectory() as folder:
            found = kill_any(job, options.kills, Path(folder), seed)
        ends = ", ".join(f"{end} {n}" for end, n in found.ends.items())
        print(f"{job}: {options.kills} kills ({ends}), {len(found.findings)} lost or half", flush=True)
        for finding in found.findings:
            print(f"  {finding}", flush=True)
        n_findings += len(found.findings)
    return 1 if n_findings else 0


if __name__ == "__main__":
    sys.exit(main())
