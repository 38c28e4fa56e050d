"""The web application: pages, JSON service and metrics."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import threading
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException as StarletteException

from herdner import __version__
from herdner.corpora.formats import WRITABLE
from herdner.inference.registry import BACKENDS, describe_backend, make_backend
from herdner.integrations.serve.costs import label_factor
from herdner.integrations.serve.middleware import CLIENT_CLOSED_REQUEST, Metrics, RequestGuard, RequestMetrics
from herdner.integrations.serve.pool import (
    ClientGone,
    Limits,
    Pool,
    PoolBusy,
    RequestRefused,
    RequestTimeout,
    WorkerFault,
)
from herdner.integrations.serve.schema import (
    MAX_BACKENDS,
    MAX_TEXTS,
    OPTIONS,
    BackendInfo,
    ErrorResponse,
    ExplainRequest,
    ExplainResponse,
    FileRequest,
    Health,
    LimitsInfo,
    ServiceInfo,
    TagRequest,
    TagResponse,
    TextsResponse,
)
from herdner.ner.known_names import Names
from herdner.ner.known_names.known import NamesLike
from herdner.ner.tagger import Tagger

DEFAULT_BACKENDS = ("sum-product", "viterbi")

_FILE_EXTENSIONS = {
    "text": "txt", "label-studio": "json", "doccano": "jsonl", "prodigy": "jsonl", "brat": "tar.gz"
}  # fmt: skip
_DESCRIPTION = (
    "Finds the names in a text and labels them consistently: the mentions of one name are linked. Offsets count"
    " characters (Unicode code points), not bytes, and not the UTF-16 units of JavaScript."
)
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "The body is not JSON, or the host name is not accepted.",
        408: "The body did not arrive in time.",
        413: "The text or the body is too large.",
        422: "A field, a backend or an option is invalid; the message says which.",
        500: "The server failed; its log contains the details.",
        503: "All workers are busy, or too many large requests are running; try again later.",
        504: "The request exceeded the time limit and was cancelled.",
    }.items()
}
_MAX_LOCATION = 200  # characters of a field's path in a message
_REWORDED = {  # texts of pydantic
    "Value error, ": "", "Input should be": "must be", "List should have": "must have", " after validation": "",
}  # fmt: skip

# Pages, scripts and styles by URL path. Each has a route of its own, so that no request can reach other files.
_PAGES = {"/": "index.html", "/docs": "docs.html"} | {
    f"/{name}": name
    for name in ("style.css", "app.js", "view.js", "links.js", "make.js", "why.js", "file.js", "docs.js", "icon.svg")
}
_MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
# Files of the pages that `herdner.text.io.html_view` also writes into HTML files.
_SHARED = {f"/{name}": name for name in ("names.css", "curve.js")}
# Swagger UI of the package fastapi-swagger. It sets styles and converts strings to HTML, so it needs another policy.
_SWAGGER_PAGES = {"/try": "try.html", "/try.js": "try.js"}
_SWAGGER_FILES = {f"/{name}": name for name in ("swagger-ui.css", "swagger-ui-bundle.js")}
_SWAGGER_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def create_app(
    model: str | os.PathLike[str] | Tagger = "en",
    *,
    backends: Sequence[str] = DEFAULT_BACKENDS,
    names: NamesLike | None = None,
    limits: Limits | None = None,
    hosts: Iterable[str] = (),
) -> FastAPI:
    """Build the ASGI application of the web service.

    It starts ``limits.n_workers`` processes and waits until the first one has loaded the model. They end with the
    application's lifespan. The processes are spawned, so a script must call this function below
    ``if __name__ == "__main__":``.

    Args:
        model: Name of a shipped model, a model file, or a trained tagger.
        backends: Backends that are selected when the page opens.
        names: Known names, as in `Tagger.pipe`.
        limits: Limits of requests; None: the defaults.
        hosts: Accepted host names besides localhost. IP addresses are always accepted.

    Returns:
        The application.

    Raises:
        ValueError: The model cannot be loaded, or a backend is unknown.
    """
    limits = limits or Limits()
    for name in backends:
        describe_backend(name)
    if not 1 <= len(backends) <= MAX_BACKENDS:
        raise ValueError(f"the number of `backends` must be from 1 to {MAX_BACKENDS}, got {len(backends)}")
    known_names = None if names is None else Names.of(names)
    pool = Pool(model if isinstance(model, Tagger) else os.fspath(model), limits, known_names)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        pool.close()

    app = FastAPI(
        title="herdner",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,  # FastAPI's own pages load scripts from other hosts
        redoc_url=None,
        lifespan=lifespan,
    )
    metrics = Metrics()
    app.add_middleware(
        RequestGuard, hosts=("localhost", *hosts), body_bytes=limits.body_bytes, seconds=limits.seconds,
        large_bodies=max(2, limits.n_workers),
    )  # fmt: skip
    app.add_exception_handler(RequestValidationError, _validation_error)
    for status in (404, 405):
        app.add_exception_handler(status, _no_such_page)
    app.state.pool = pool
    _add_pages(app)
    _add_state(app, metrics, pool)
    _add_service(app, pool, _service_info(pool, list(dict.fromkeys(backends))), metrics)
    paths = [str(getattr(route, "path", "")) for route in app.routes]
    app.add_middleware(RequestMetrics, metrics=metrics, paths=paths)
    return app


def _add_pages(app: FastAPI) -> None:
    """Add routes for all pages, scripts and styles to the application.

    The files are read once.
    """
    folder = files("herdner.integrations.serve") / "pages"
    shared = files("herdner.text.io") / "assets"
    sources: list[tuple[Any, dict[str, str], str | None]] = [(folder, _PAGES, None), (shared, _SHARED, None)]
    if find_spec("fastapi_swagger") is not None:
        sources.append((folder, _SWAGGER_PAGES, _SWAGGER_POLICY))
        sources.append((files("fastapi_swagger") / "resources", _SWAGGER_FILES, _SWAGGER_POLICY))
    for source, pages, policy in sources:
        for path, name in pages.items():
            _add_page(app, path, (source / name).read_bytes(), _MEDIA_TYPES[name.rpartition(".")[2]], policy)


def _add_page(app: FastAPI, path: str, content: bytes, media_type: str, policy: str | None) -> None:
    headers = None if policy is None else {"Content-Security-Policy": policy}

    async def page() -> Response:
        return Response(content, media_type=media_type, headers=headers)

    app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False)


def _add_state(app: FastAPI, metrics: Metrics, pool: Pool) -> None:
    health = Health(status="ok", version=__version__, model=str(pool.about["model"]))

    @app.get("/health", summary="State of the service", tags=["service"])
    async def get_health() -> Health:
        return health

    @app.get("/metrics", include_in_schema=False)
    async def get_metrics() -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)


def _add_service(app: FastAPI, pool: Pool, info: ServiceInfo, metrics: Metrics) -> None:
    @app.get("/api/about", summary="The model, the backends and the limits", tags=["service"])
    async def get_about() -> ServiceInfo:
        return info

    @app.post(
        "/api/tag", response_model=TagResponse | TextsResponse, responses=_ERRORS, summary="Tag texts", tags=["service"]
    )
    async def post_tag(request: TagRequest, http: Request) -> Response:
        """Tag one or several texts with one or more backends.

        The time limit applies to all texts and backends together. If one backend fails, the whole request fails.
        `Tagger.tag` with the same backend, options and seed returns the same entities.
        """
        response = await _respond(pool, request, http)
        metrics.characters.inc(request.characters)
        return response

    @app.post(
        "/api/explain", response_model=ExplainResponse, responses=_ERRORS, summary="Explain a label", tags=["service"]
    )
    async def post_explain(request: ExplainRequest, http: Request) -> Response:
        """Explain the label of an entity in a text.

        The response contains the terms of the log-odds of the label: features, transitions and links. They equal those
        of `Tagger.explain` with the same backend, options and seed.
        """
        return await _respond(pool, request, http)

    @app.post("/api/file", responses=_ERRORS, summary="Write a file", tags=["service"], response_class=Response)
    async def post_file(request: FileRequest, http: Request) -> Response:
        """Write a text with its entities as a file, in any format that herdner can write."""
        response = await _respond(pool, request, http)
        if response.status_code != 200:  # the client has disconnected
            return response
        content = base64.b64decode(json.loads(bytes(response.body))["base64"])
        name = f"herdner.{_FILE_EXTENSIONS.get(request.format, request.format)}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type="application/octet-stream", headers=headers)


async def _respond(pool: Pool, request: TagRequest | ExplainRequest | FileRequest, http: Request) -> Response:
    """Return the response of a worker process to a request, or raise an HTTPException.

    A thread waits for the worker, while this coroutine waits for the client to disconnect.
    """
    client_gone = threading.Event()

    async def listen() -> None:
        while (await http.receive())["type"] != "http.disconnect":
            pass
        client_gone.set()

    listener = asyncio.create_task(listen())
    try:
        return await run_in_threadpool(_run, pool, request, client_gone)
    finally:
        listener.cancel()


def _run(pool: Pool, request: TagRequest | ExplainRequest | FileRequest, client_gone: threading.Event) -> Response:
    limits = pool.limits
    if (n := request.characters) > limits.characters:
        raise HTTPException(413, f"the text has {n:,} characters; the limit of this server is {limits.characters:,}")
    try:
        body = request.model_dump_json(exclude_none=True).encode()  # without None, so that backends use their defaults
        cost = request.cost * label_factor(len(pool.about["labels"]))
        content = pool.run(body, cost=cost, client_gone=client_gone)
        return Response(content, media_type="application/json")
    except RequestRefused as error:
        raise HTTPException(422, " ".join(str(error).split())) from None
    except PoolBusy:
        raise HTTPException(503, "all workers are busy; try again later", {"Retry-After": "2"}) from None
    except ClientGone:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    except RequestTimeout:
        message = f"the request took more than {limits.seconds:g} seconds; send a shorter text, or set fewer sweeps"
        raise HTTPException(504, message) from None
    except WorkerFault as fault:
        raise RuntimeError(f"a worker process failed\n{fault}") from None


def _service_info(pool: Pool, default_backends: list[str]) -> ServiceInfo:
    limits = pool.limits
    return ServiceInfo(
        version=__version__,
        **pool.about,
        default_backends=default_backends,
        backends=[
            BackendInfo(
                name=entry.name,
                summary=entry.summary,
                links=make_backend(entry.name).capabilities.linked,
                options=[option.name for option in entry.options if option.name in OPTIONS],
            )
            for entry in map(describe_backend, BACKENDS)
        ],
        formats=[name for name in WRITABLE if name != "parquet" or find_spec("pyarrow") is not None],
        limits=LimitsInfo(
            characters=limits.characters, body_bytes=limits.body_bytes, texts=MAX_TEXTS, backends=MAX_BACKENDS,
            seconds=limits.seconds, workers=limits.n_workers,
        ),
    )  # fmt: skip


async def _no_such_page(_: Request, error: Exception) -> JSONResponse:
    """Return the response to an unknown path or method. It names the page that lists all paths."""
    assert isinstance(error, StarletteException)
    return JSONResponse({"detail": f"{error.detail}; see /docs"}, error.status_code, error.headers)


async def _validation_error(_: Request, error: Exception) -> JSONResponse:
    """Return a response with a one-line description of an invalid request.

    The description does not repeat the content of the request.
    """
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return JSONResponse({"detail": f"the body is not JSON: {first['ctx']['error']}"}, 400)
    if first["type"] in {"model_attributes_type", "missing"} and first["loc"] == ("body",):
        message = "the body must be a JSON object, sent with the header Content-Type: application/json"
        return JSONResponse({"detail": message}, 422)
    location = ""
    for part in first["loc"][1:]:
        location += f"[{part}]" if isinstance(part, int) else f".{part}" if location else str(part)
    message = "unknown key; /docs lists the keys" if first["type"] == "extra_forbidden" else first["msg"]
    for theirs, ours in _REWORDED.items():
        message = message.replace(theirs, ours)
    detail = f"{location[:_MAX_LOCATION] or 'body'}: {message}"
    return JSONResponse({"detail": detail.encode("utf-8", "backslashreplace").decode()}, 422)
