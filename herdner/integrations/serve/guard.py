"""What stands before the application: who may ask, how much, and what every answer says to the browser."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterable

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOG = logging.getLogger("herdner.integrations.serve")

# Scripts, styles and requests of this page alone; no frame, no form, no plugin, and no string that becomes markup.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Gone(Exception):
    """The client has left before it was done asking."""


class Guard:
    """ASGI middleware around the whole application.

    Hosts: a page elsewhere can have its own name point to this machine (DNS rebinding), and would then read the
    answers. Its name is in the Host header; so names other than ``hosts`` are refused. Addresses cannot be rebound, so
    that all of them pass, those of IPv6 too; Starlette's TrustedHostMiddleware knows neither.
    Bodies: at most ``body_bytes``, by the Content-Length before anything is read, else counted; within ``seconds``.
    Starlette, from 1.6 on, counts their bytes too, but not the time, and does not say how many are allowed.
    Exceptions: logged here; the client is told that there was one.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], body_bytes: int, seconds: float) -> None:
        self.app, self.body_bytes, self.seconds = app, body_bytes, seconds
        self.hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        async def refuse(status: int, detail: str) -> None:
            # What is left of the request is not read any more.
            await JSONResponse({"detail": detail}, status, {"Connection": "close"})(scope, receive, sending)

        try:
            headers = Headers(scope=scope)
            self._check_host(headers.get("host", ""))
            body = await self._body(headers, receive)
            await self.app(scope, _replayed(body, receive), sending)
        except _Gone:
            return
        except HTTPException as refusal:
            await refuse(refusal.status_code, refusal.detail)
        except Exception:
            LOG.exception("%s %s failed", scope["method"], scope["path"])
            if not started:
                await refuse(500, "something went wrong here; the server's log says what")

    def _check_host(self, header: str) -> None:
        name = _host(header)
        if name in self.hosts:
            return
        try:
            ipaddress.ip_address(name)
        except ValueError:
            detail = "this server does not go by that host name (herdner serve --allow-host NAME)"
            raise HTTPException(400, detail) from None

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        too_large = HTTPException(413, f"the request's body is too large; at most {self.body_bytes} bytes")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18:
            raise HTTPException(400, "the Content-Length header is not a number")
        if int(length) > self.body_bytes:
            raise too_large
        body = bytearray()
        try:
            with anyio.fail_after(self.seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise _Gone
                    body += message.get("body", b"")
                    if len(body) > self.body_bytes:
                        raise too_large
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise HTTPException(408, f"the request's body did not arrive within {self.seconds:g} seconds") from None


def _host(header: str) -> str:
    """The name or address in a Host header, without the port and the brackets of IPv6."""
    name = header.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Hands out a body that has been read, then goes on as before."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
