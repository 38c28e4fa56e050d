"""The way to a cluster: processes of this machine, or a scheduler's address."""

# Dask's calls have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import WorkerPlugin

import herdner

TIMEOUT = 15.0  # seconds


class ClusterError(OSError):
    """The cluster cannot be reached or used; the message says why."""


@contextmanager
def cluster_client(address: str = "local", jobs: int | None = None, timeout: float = TIMEOUT) -> Generator[Client]:
    """A client of the scheduler at an address such as ``tcp://10.0.0.1:8786``, or of ``jobs`` processes of this machine
    (``local``; None: one for each processor).

    Raises:
        ClusterError: Nobody answers within ``timeout`` seconds.
    """
    if address == "local":
        with _local(jobs or os.cpu_count() or 1) as client:
            yield client
        return
    parts = urlsplit(address)
    if parts.scheme not in ("tcp", "tls", "ws", "wss") or not parts.netloc:
        raise ClusterError(f"{address!r} is no address of a scheduler; expected local, or e.g. tcp://10.0.0.1:8786")
    try:
        client = Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        why = "" if "Timed out" in str(error) or not str(error) else f" ({error})"
        message = f"no scheduler answers at {address} within {timeout:g} seconds{why}; is it running there?"
        raise ClusterError(message) from None
    with client:
        yield client


@contextmanager
def _local(jobs: int) -> Generator[Client]:
    port = "127.0.0.1:0"  # any: Dask's usual one may be in use
    cluster = LocalCluster(
        n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=port,
        silence_logs=logging.CRITICAL, plugins=[_Uninterrupted()],
    )  # fmt: skip
    try:
        with Client(cluster, set_as_default=False) as client:
            yield client
    finally:
        cluster.close()


class _Uninterrupted(WorkerPlugin):
    """Ctrl-C, which a terminal sends to all processes, is for the one that holds the cluster; it ends the others."""

    def setup(self, worker: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def check_workers(client: Client, timeout: float = TIMEOUT) -> None:
    """Wait for a worker. Raises ClusterError where there is none, or one with another herdner, whose results might
    differ.
    """
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError:
        raise ClusterError("the cluster has no workers; start some with: dask worker ADDRESS --nthreads 1") from None
    mend = f"install herdner[dask]=={herdner.__version__} on all of them"
    try:
        versions: Any = client.run(worker_version)
    except Exception as error:  # whatever a worker without herdner makes of it
        raise ClusterError(f"a worker cannot use herdner ({type(error).__name__}: {error}); {mend}") from None
    other = set(versions.values()) - {herdner.__version__}
    if other:
        raise ClusterError(f"workers have herdner {', '.join(sorted(other))}; {mend}")


def worker_version() -> str:
    """Runs on each worker."""
    return herdner.__version__
