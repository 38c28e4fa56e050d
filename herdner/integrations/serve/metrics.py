"""Figures of the service in Prometheus's text form."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60)


class Figures:
    """Counts of one application: requests by path and status, the time they took, characters that were tagged."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("herdner_requests", "Requests answered.", ["path", "status"], registry=self.registry)
        self.seconds = Histogram(
            "herdner_request_seconds", "Time to the whole answer.", ["path"], buckets=SECONDS, registry=self.registry
        )
        self.characters = Counter("herdner_characters", "Characters of texts that were tagged.", registry=self.registry)

    def text(self) -> bytes:
        """All of them, as `GET /metrics` answers."""
        return generate_latest(self.registry)


class Measured:
    """ASGI middleware around the whole application, so that refusals are counted too. Paths that the application does
    not have are one path: else whoever asks for many would fill the memory.
    """

    def __init__(self, app: ASGIApp, figures: Figures, paths: frozenset[str]) -> None:
        self.app, self.figures, self.paths = app, figures, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, sending)
        finally:
            path: Any = scope["path"] if scope["path"] in self.paths else "other"
            self.figures.requests.labels(path, str(status or 499)).inc()  # 499: the client has left
            self.figures.seconds.labels(path).observe(perf_counter() - began)
