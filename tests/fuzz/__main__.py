"""Runs the fuzzer for hours: ``python -m tests.fuzz``. The exit status is 1 if it found an error."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in (".", "support")]

from fuzz.run import SECONDS, fuzz, shared_out  # noqa: E402
from fuzz.targets import TARGETS  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random cases, in child processes.")
    parser.add_argument("targets", nargs="*", help=f"some of {', '.join(TARGETS)} [all]")
    parser.add_argument("--minutes", type=float, default=10, help="of all targets together [10]")
    parser.add_argument("--cases", type=int, help="of each target, in place of minutes")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="that one case may take; more on a busy machine [%(default)g]"
    )
    parser.add_argument("--first", type=int, help="number of the first case [by the clock]")
    options = parser.parse_args()
    targets = options.targets or list(TARGETS)
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"unknown target {min(unknown)}; there is {', '.join(TARGETS)}")
    first = time.time_ns() // 10**9 * 10**6 if options.first is None else options.first
    if options.cases is None:
        found = shared_out(targets, options.minutes, first, options.seconds)
    else:
        found = ((target, fuzz(target, first, options.cases, seconds=options.seconds)) for target in targets)
    total = n_findings = 0
    for target, outcome in found:
        ends = ", ".join(f"{end} {n}" for end, n in outcome.ends.most_common())
        print(f"{target}: {outcome.cases} cases ({ends}), {len(outcome.findings)} findings", flush=True)
        for finding in outcome.findings:
            print(f"  {finding}", flush=True)
        total, n_findings = total + outcome.cases, n_findings + len(outcome.findings)
    print(f"{total} cases, {n_findings} findings")
    return 1 if n_findings else 0


if __name__ == "__main__":
    sys.exit(main())
