"""HTTP connections of uvicorn, with limits on idle ones and on slow requests."""

from __future__ import annotations

import asyncio
from typing import cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 256  # a new connection beyond this number closes the connection that has been idle for longest
MAX_CONNECTIONS_PER_CLIENT = 64  # the same limit for the connections of one address
HEADER_BYTES = 16 * 1024  # maximum size of a request's first line and headers
HEADER_SECONDS = 10.0  # time limit for a request's headers, from the connection or the end of the last response
_SHUTDOWN_SECONDS = 2  # time limit for running requests after Ctrl-C


class Connection(H11Protocol):
    """An HTTP connection that is closed if the headers of a request do not arrive in time.

    uvicorn's own time limit applies only after the first response.
    """

    idle_since = 0.0
    _timer: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str | None:
        """Network address of the client."""
        return self.client[0] if self.client else None

    @property
    def is_idle(self) -> bool:
        """True if the connection is not processing a request."""
        return self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of a new connection; if too many are open, close the connection that has been idle longest.

        Args:
            transport: The connection's transport.
        """
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        self._update_timer()
        connections = [each for each in cast(set[object], self.connections) if isinstance(each, Connection)]
        own = [each for each in connections if each.address == self.address]
        has_too_many = len(own) > MAX_CONNECTIONS_PER_CLIENT
        if has_too_many or len(connections) > MAX_CONNECTIONS:
            idle = [each for each in (own if has_too_many else connections) if each.is_idle]
            min(idle, key=lambda each: each.idle_since, default=self).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Process the bytes that the connection has received.

        Args:
            data: The bytes.
        """
        super().data_received(data)
        self._update_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer, because the connection has been closed.

        Args:
            exc: The reason, if the connection was not closed regularly.
        """
        super().connection_lost(exc)
        self._stop_timer()

    def _update_timer(self) -> None:
        """Start the timer if the connection is idle, and stop the timer otherwise.

        Further bytes of a request's headers do not restart the timer.
        """
        if not self.is_idle:
            self._stop_timer()
        elif self._timer is None:
            self.idle_since = self.loop.time()
            self._timer = self.loop.call_later(HEADER_SECONDS, self._abort_idle)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _abort_idle(self) -> None:
        self._timer = None
        if self.is_idle:
            self.transport.abort()


def server_config(app: ASGIApp) -> uvicorn.Config:
    """Return the uvicorn configuration of ``herdner serve``.

    uvicorn's warnings about invalid requests are turned off: clients could fill the log with them.

    Args:
        app: The application.

    Returns:
        The configuration.
    """
    return uvicorn.Config(
        app, http=Connection, log_level="error", access_log=False, server_header=False, proxy_headers=False,
        ws="none", timeout_keep_alive=5, timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )  # fmt: skip
