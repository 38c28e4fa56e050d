"""``python -m tests.faults --kills 100``: so many kill -9 of each job. Exit status 1 where a file was lost or half."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a child that is forked has no threads but one
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.kills import JOBS, kill


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Processes killed at any moment.")
    parser.add_argument("jobs", nargs="*", help=f"some of {', '.join(JOBS)} [all]")
    parser.add_argument("--kills", type=int, default=100, help="of each job [100]")
    parser.add_argument("--seed", type=int, help="of the moments [by the clock]")
    options = parser.parse_args()
    if unknown := set(options.jobs) - set(JOBS):
        parser.error(f"unknown job {min(unknown)}; there is {', '.join(JOBS)}")
    seed = int(time.time()) if options.seed is None else options.seed
    n_findings = 0
    for job in options.jobs or JOBS:
        with tempfile.TemporaryDirectory() as folder:
            found = kill(job, options.kills, Path(folder), seed)
        ends = ", ".join(f"{end} {n}" for end, n in found.ends.items())
        print(f"{job}: {options.kills} kills ({ends}), {len(found.findings)} lost or half", flush=True)
        for finding in found.findings:
            print(f"  {finding}", flush=True)
        n_findings += len(found.findings)
    return 1 if n_findings else 0


if __name__ == "__main__":
    sys.exit(main())
