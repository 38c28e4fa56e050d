"""ASGI middleware: checks of hosts and bodies, security headers, and metrics."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from time import perf_counter
from typing import Any
from urllib.parse import quote

import anyio
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOG = logging.getLogger("herdner.integrations.serve")
access_logger = logging.getLogger("herdner.integrations.serve.access")
MAX_LOGGED_PATH = 200  # characters
# Parsing a large body, such as a file with 30,000 entities, takes the event loop 0.1 s, during which it reads no other
# request. Therefore the number of such requests at the same time is limited.
LARGE_BODY_BYTES = 128 * 1024

# The page loads scripts, styles and data only from this server. It has no frames, forms or plugins, and its scripts
# convert no string to HTML.
_CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": _CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
CLIENT_CLOSED_REQUEST = 499  # nginx's status for a client that disconnects before the response
_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60)  # buckets of the histogram


class _ClientDisconnected(Exception):
    """Error: the client has disconnected before its request was complete."""


class RequestGuard:
    """Middleware that checks requests before they reach the application, and adds security headers to all responses.

    Hosts: a foreign web page can let its own host name resolve to this machine (DNS rebinding) and then read
    responses. Its host name is in the Host header, so only ``hosts`` and IP addresses are accepted. Starlette's
    TrustedHostMiddleware accepts neither all addresses nor IPv6.

    Bodies: their size, the time to receive them, and the number of large ones at the same time are limited. The size is
    checked by Content-Length before reading, and by counting while reading. Starlette (since 1.6) limits only the size.

    Exceptions: they are logged, and the client gets a message without details.

    Args:
        app: The application.
        hosts: Accepted host names.
        body_bytes: Maximum size of a body, in bytes.
        seconds: Time limit for a body.
        large_bodies: Largest number of requests with large bodies at the same time.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], body_bytes: int, seconds: float, large_bodies: int) -> None:
        """Store the wrapped application, the accepted hosts and the limits of requests."""
        self.app, self.body_bytes, self.seconds, self.large_bodies = app, body_bytes, seconds, large_bodies
        self.hosts = {host.lower() for host in hosts}
        self.n_large_bodies = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it to the application unless it is refused."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        async def refuse(status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
            # The connection is closed because the rest of the request is not read.
            response = JSONResponse({"detail": detail}, status, {"Connection": "close", **(headers or {})})
            await response(scope, receive, send_with_headers)

        try:
            headers = Headers(scope=scope)
            self._check_host(headers.get("host", ""))
            body = await self._read_body(headers, receive)
            with self._large_body(len(body)):
                await self.app(scope, _replay(body, receive), send_with_headers)
        except _ClientDisconnected:
            return
        except HTTPException as refusal:
            await refuse(refusal.status_code, refusal.detail, refusal.headers)
        except Exception:
            LOG.exception("%s %s failed", scope["method"], scope["path"])
            if not started:
                await refuse(500, "the server failed; its log contains the details")

    def _check_large(self, n_bytes: int) -> bool:
        """Return True if a body has more than the usual size; raise a 503 error if too many such requests run."""
        is_large = n_bytes > LARGE_BODY_BYTES
        if is_large and self.n_large_bodies >= self.large_bodies:
            raise HTTPException(503, "too many large requests are running; try again later", {"Retry-After": "2"})
        return is_large

    @contextmanager
    def _large_body(self, n_bytes: int) -> Generator[None]:
        """Count a request during a ``with`` block if its body is large, or raise the error of `_check_large`."""
        is_large = self._check_large(n_bytes)
        self.n_large_bodies += is_large
        try:
            yield
        finally:
            self.n_large_bodies -= is_large

    def _check_host(self, header: str) -> None:
        """Raise a 400 error unless the Host header contains an accepted name or an IP address."""
        name = header.strip().lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        if name in self.hosts:
            return
        try:
            ipaddress.ip_address(name)
        except ValueError:
            raise HTTPException(
                400, f"the host name {name!r:.80} is not accepted; start the server by herdner serve --allow-host NAME"
            ) from None

    async def _read_body(self, headers: Headers, receive: Receive) -> bytes:
        too_large = HTTPException(413, f"the request's body is too large; the limit is {self.body_bytes} bytes")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18:
            raise HTTPException(400, f"the Content-Length header is not a number, but {length!r:.40}")
        if int(length) > self.body_bytes:
            raise too_large
        self._check_large(int(length))  # before the body is read
        body = bytearray()
        try:
            with anyio.fail_after(self.seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise _ClientDisconnected
                    body += message.get("body", b"")
                    if len(body) > self.body_bytes:
                        raise too_large
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise HTTPException(408, f"the request's body did not arrive within {self.seconds:g} seconds") from None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a function that returns ``body`` at its first call, and calls ``receive`` at each later call."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


class Metrics:
    """Prometheus metrics of the service: numbers and durations of requests, and numbers of tagged characters."""

    def __init__(self) -> None:
        """Create the metrics in a new Prometheus registry."""
        self.registry = CollectorRegistry()
        self.requests = Counter("herdner_requests", "Requests answered.", ["path", "status"], registry=self.registry)
        self.seconds = Histogram(
            "herdner_request_seconds", "Seconds until the response is complete.", ["path"],
            buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.characters = Counter("herdner_characters", "Characters of tagged texts.", registry=self.registry)

    def text(self) -> bytes:
        """Return all metrics of the service in the text format of Prometheus."""
        return generate_latest(self.registry)


class RequestMetrics:
    """Middleware that updates the metrics for each request, including refused ones, and writes the access log.

    A line of the log has the address of the client, the method, the path, the status and the time. It contains neither
    texts nor parameters.

    Args:
        app: The application.
        metrics: The metrics to update.
        paths: Paths of the application. All other paths are counted as "other", because the number of unknown paths is
            unlimited.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: Collection[str]) -> None:
        """Store the wrapped application and the metrics."""
        self.app, self.metrics, self.paths = app, metrics, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, and update the metrics."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = perf_counter(), CLIENT_CLOSED_REQUEST

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        finally:
            path: Any = scope["path"] if scope["path"] in self.paths else "other"
            seconds = perf_counter() - start
            self.metrics.requests.labels(path, str(status)).inc()
            self.metrics.seconds.labels(path).observe(seconds)
            if access_logger.isEnabledFor(logging.INFO):
                client = scope["client"][0] if scope.get("client") else "-"
                requested = quote(scope["path"][:MAX_LOGGED_PATH])
                now = datetime.now(timezone.utc).isoformat(timespec="seconds")
                line = "%s %s %s %s %d %.0f ms"
                access_logger.info(line, now, client, scope["method"], requested, status, 1000 * seconds)
