"""Translate Cython modules to C in one process, because starting Cython takes longer than most translations.

python translate.py DEPFILE BOUNDSCHECK OUTPUT...: writes each OUTPUT (NAME.c or NAME.checked.c) that is older than
NAME.pyx, this script or a declaration. BOUNDSCHECK: "true" checks every index at run time.
"""

import os
import sys
from pathlib import Path

from Cython.Compiler.Main import compile as translate


def main(depfile: str, boundscheck: str, *outputs: str) -> int:
    """Write the outputs that are out of date. Return exit status 1 if Cython rejects a module."""
    script = Path(__file__).resolve()
    here = script.parent
    shared = [script, *sorted(here.glob("*.pxd")), *sorted(here.parent.glob("herdner/_ext/*.pxd"))]
    sources = [here / f"{Path(output).name.split('.')[0]}.pyx" for output in outputs]
    needed = [str(path).replace(" ", "\\ ") for path in [*shared, *sources]]
    Path(depfile).write_text(f"{outputs[0]}: {' '.join(needed)}\n", encoding="utf-8")
    newest = max(path.stat().st_mtime for path in shared)
    targets = [Path(output).resolve() for output in outputs]
    os.chdir(here)  # so that C and tracebacks do not contain paths of this machine
    for source, target in zip(sources, targets, strict=True):
        if target.exists() and target.stat().st_mtime > max(newest, source.stat().st_mtime):
            continue
        result = translate(
            source.name,
            full_module_name=f"herdner._ext.{source.stem}",
            output_file=str(target),
            include_path=[".", ".."],
            language_level=3,
            shared_utility_qualified_name="herdner._ext._shared",
            compiler_directives={
                # Modules have no mutable state. Objects that threads share are locked by their owners (features.pyx).
                "freethreading_compatible": True,
                # Methods check the type of `self`, which those with `binding` do not.
                "binding": False,
                # Python checks all arguments before a loop begins, and no index is negative; -Dchecked=true checks
                # every index again, for tests. Division is always that of C: some loops divide by 0.0 on purpose, and
                # UndefinedBehaviorSanitizer reports integer division by 0.
                "wraparound": False,
                "cdivision": True,
                "boundscheck": boundscheck == "true",
                "initializedcheck": boundscheck == "true",
            },
        )
        if result.num_errors:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
