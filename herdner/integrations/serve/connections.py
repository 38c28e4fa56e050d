"""Connections: uvicorn with limits on those that ask nothing, or take their time to ask."""

from __future__ import annotations

import asyncio
from typing import cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 256  # open at a time; a new one ends the one that has been idle for longest
MOST_OF_ONE = 64  # of one address, in the same way
HEADER_BYTES = 16 * 1024  # of a request's line and headers
HEADER_SECONDS = 10.0  # for a request's headers, from the connection or the last answer's end on
_TO_FINISH = 2  # seconds that requests have to end after Ctrl-C


class Connection(H11Protocol):
    """A connection that ends where no request begins in time; uvicorn's own time limit begins with the first answer."""

    since = 0.0
    _timer: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str | None:
        """Of the client."""
        return self.client[0] if self.client else None

    @property
    def is_idle(self) -> bool:
        """No request is being answered."""
        return self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = self.loop.time()
        self._watch()
        everyone = [each for each in cast(set[object], self.connections) if isinstance(each, Connection)]
        own = [each for each in everyone if each.address == self.address]
        if len(own) > MOST_OF_ONE or len(everyone) > MOST:
            idle = [each for each in (own if len(own) > MOST_OF_ONE else everyone) if each.is_idle]
            min(idle, key=lambda each: each.since, default=self).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unwatch()

    def _watch(self) -> None:
        """More bytes do not put the end off."""
        if not self.is_idle:
            self._unwatch()
        elif self._timer is None:
            self.since = self.loop.time()
            self._timer = self.loop.call_later(HEADER_SECONDS, self._end)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._timer = None
        if self.is_idle:
            self.transport.abort()


def configured(app: ASGIApp) -> uvicorn.Config:
    """uvicorn as ``herdner serve`` runs it.

    It warns of what strangers send, a line each: they could fill the log and, where nobody reads it, stop the server.
    """
    return uvicorn.Config(
        app, http=Connection, log_level="error", access_log=False, server_header=False, proxy_headers=False,
        ws="none", timeout_keep_alive=5, timeout_graceful_shutdown=_TO_FINISH,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )  # fmt: skip
