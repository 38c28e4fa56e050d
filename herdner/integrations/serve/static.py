"""Pages, scripts and styles: each by its address, so that no folder is ever looked into for a request."""

from __future__ import annotations

import importlib.resources
from importlib.util import find_spec

from fastapi import FastAPI
from fastapi.responses import Response

_PAGES = {"/": "index.html", "/docs": "docs.html"} | {
    f"/{name}": name
    for name in ("style.css", "app.js", "view.js", "links.js", "make.js", "why.js", "file.js", "docs.js", "icon.svg")
}
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
# Swagger UI, which the package fastapi-swagger brings. It sets styles by itself, and markup from strings.
_OURS = {"/try": "try.html", "/try.js": "try.js"}
_THEIRS = {f"/{name}": name for name in ("swagger-ui.css", "swagger-ui-bundle.js")}
_SWAGGER_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def add_pages(app: FastAPI) -> None:
    """Everything that is read once and answered as it is."""
    folder = importlib.resources.files("herdner.integrations.serve") / "pages"
    for address, name in _PAGES.items():
        _add(app, address, (folder / name).read_bytes(), _TYPES[name.rpartition(".")[2]])
    if find_spec("fastapi_swagger") is None:
        return
    package = importlib.resources.files("fastapi_swagger") / "resources"
    for place, names in ((folder, _OURS), (package, _THEIRS)):
        for address, name in names.items():
            _add(app, address, (place / name).read_bytes(), _TYPES[name.rpartition(".")[2]], _SWAGGER_POLICY)


def _add(app: FastAPI, address: str, content: bytes, media_type: str, policy: str | None = None) -> None:
    headers = None if policy is None else {"Content-Security-Policy": policy}

    async def page() -> Response:
        return Response(content, media_type=media_type, headers=headers)

    app.add_api_route(address, page, methods=["GET", "HEAD"], include_in_schema=False)
