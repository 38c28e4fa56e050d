"""Translates Cython modules to C in one process, as starting Cython takes longer than translating most of them.

python translate.py DEPFILE BOUNDSCHECK OUTPUT...: makes OUTPUT (NAME.c or NAME.checked.c) from NAME.pyx where this or
any declaration is newer. BOUNDSCHECK (true or false): whether each index is checked.
"""

import os
import sys
from pathlib import Path

from Cython.Compiler.Main import compile as translate


def main(depfile: str, boundscheck: str, *outputs: str) -> int:
    """Writes what is out of date; exit status 1 where Cython refuses a module."""
    script = Path(__file__).resolve()
    here = script.parent
    shared = [script, *sorted(here.glob("*.pxd")), *sorted(here.parent.glob("herdner/_ext/*.pxd"))]
    sources = [here / f"{Path(output).name.split('.')[0]}.pyx" for output in outputs]
    needed = [str(path).replace(" ", "\\ ") for path in [*shared, *sources]]
    Path(depfile).write_text(f"{outputs[0]}: {' '.join(needed)}\n", encoding="utf-8")
    newest = max(path.stat().st_mtime for path in shared)
    targets = [Path(output).resolve() for output in outputs]
    os.chdir(here)  # so that C and tracebacks name files by no path of this machine
    for source, target in zip(sources, targets, strict=True):
        if target.exists() and target.stat().st_mtime > max(newest, source.stat().st_mtime):
            continue
        found = translate(
            source.name,
            full_module_name=f"herdner._ext.{source.stem}",
            output_file=str(target),
            include_path=[".", ".."],
            language_level=3,
            shared_utility_qualified_name="herdner._ext._shared",
            compiler_directives={
                # No module has state of its own that changes; what threads share is locked where it does: features.pyx.
                "freethreading_compatible": True,
                # What loops take is checked in Python before they begin, and no index is ever below 0; -Dchecked=true
                # checks each again, for tests. Division is C's in both: some divide by 0.0 on purpose, and
                # UndefinedBehaviorSanitizer tells of integers.
                "wraparound": False,
                "cdivision": True,
                "boundscheck": boundscheck == "true",
                "initializedcheck": boundscheck == "true",
            },
        )
        if found.num_errors:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
