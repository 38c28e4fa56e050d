"""``herdner tag --cluster``: files to a folder of parts, on Dask."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from herdner.base.extras import check_extra
from herdner.cli.common import complain, progress
from herdner.cli.usage import UsageError

if TYPE_CHECKING:
    from herdner.ner.inference import Inference


def tag_on_cluster(
    files: list[str],
    cluster: str,
    *,
    jobs: int | None,
    output: str | None,
    format: str,
    input_format: str | None,
    inference: Inference,
    fail: Callable[[str], None],
    **settings: Any,
) -> None:
    """Tag the files on the cluster. Leaves with code 1 where documents or parts failed."""
    if output is None or output == "-":
        raise UsageError("--cluster writes a folder of parts: add --output DIR")
    if not files or "-" in files:
        raise UsageError("--cluster reads files, folders and patterns, not standard input")
    if jobs is not None and cluster != "local":
        raise UsageError(f"--jobs is for --cluster local; the cluster at {cluster} has its own workers")
    if format not in ("jsonl", "parquet"):
        raise UsageError(f"--format {format!r}: with --cluster expected jsonl or parquet")
    if input_format not in (None, "text", "jsonl", "parquet"):
        raise UsageError(f"--input {input_format!r}: with --cluster expected text, jsonl or parquet")
    check_extra("dask", "--cluster needs Dask")
    from herdner.integrations.dask import tag_files

    # What Dask tells of its workers is for the developers of Dask; a task that fails comes back as an error.
    # Each is named that Dask's configuration gives a level of its own.
    of_dask = (f"distributed{part}" for part in ("", ".nanny", ".worker", ".scheduler"))
    for name in (*of_dask, "asyncio", "tornado", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with progress("{task.completed} of {task.total} parts") as display:
        task = display.add_task("tagging", total=None)

        def parts(done: int, total: int) -> None:
            display.update(task, completed=done, total=total)

        manifest = tag_files(
            files, output, client=cluster, jobs=jobs, format=format, input_format=input_format, fail=fail,
            progress=parts, inference=inference, **settings,
        )  # fmt: skip
    if not manifest.complete:
        complain(f"{len(manifest.missing)} of {len(manifest.parts)} parts are missing; run the same again to try them")
    if manifest.failed or not manifest.complete:
        raise typer.Exit(1)
