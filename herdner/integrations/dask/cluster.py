"""Dask clients of a scheduler, or of a temporary cluster of local processes."""

# Dask is not typed.
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
    """Error: the cluster cannot be reached or used. The message names the reason."""


@contextmanager
def cluster_client(address: str = "local", jobs: int | None = None, timeout: float = TIMEOUT) -> Generator[Client]:
    """Connect to a Dask cluster for the duration of a ``with`` block.

    Args:
        address: Address of a scheduler such as ``tcp://10.0.0.1:8786``, or ``local`` for processes of this machine.
        jobs: Number of local processes; None: one for each processor.
        timeout: Time limit for the connection, in seconds.

    Yields:
        The client.

    Raises:
        ClusterError: The address is invalid, or no scheduler answers in time.
    """
    if address == "local":
        with _local_client(jobs or os.cpu_count() or 1) as client:
            yield client
        return
    parts = urlsplit(address)
    if parts.scheme not in ("tcp", "tls", "ws", "wss") or not parts.netloc:
        raise ClusterError(
            f"the cluster must be `local` or the address of a scheduler, such as tcp://10.0.0.1:8786, got {address!r}"
        )
    try:
        client = Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise ClusterError(f"no scheduler can be reached: {reason}; check that one runs at {address}") from None
    with client:
        yield client


@contextmanager
def _local_client(jobs: int) -> Generator[Client]:
    free_port = "127.0.0.1:0"  # Dask's default port may be in use
    cluster = LocalCluster(
        n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=free_port,
        silence_logs=logging.CRITICAL, plugins=[_IgnoreInterrupts()],
    )  # fmt: skip
    try:
        with Client(cluster, set_as_default=False) as client:
            yield client
    finally:
        cluster.close()


class _IgnoreInterrupts(WorkerPlugin):
    """Worker plugin that makes workers ignore Ctrl-C, because the main process ends the workers.

    A terminal sends Ctrl-C to all processes.
    """

    def setup(self, worker: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def check_workers(client: Client) -> None:
    """Wait until the cluster has a worker, and check that all workers have this version of herdner.

    Args:
        client: Client of the cluster.

    Raises:
        ClusterError: No worker appears in time, or a worker cannot import herdner or has another version of herdner.
    """
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError:
        raise ClusterError("the cluster has no workers; start workers by: dask worker ADDRESS --nthreads 1") from None
    remedy = f"install herdner {herdner.__version__} with its extra dask on all workers"
    try:
        versions: Any = client.run(worker_version)
    except Exception as error:  # the type depends on the cause, such as a missing package
        raise ClusterError(f"a worker cannot use herdner ({type(error).__name__}: {error}); {remedy}") from None
    others = set(versions.values()) - {herdner.__version__}
    if others:
        raise ClusterError(f"some workers have another version of herdner, {', '.join(sorted(others))}; {remedy}")


def worker_version() -> str:
    """Return the version of herdner on the Dask worker that runs this function."""
    return herdner.__version__
