"""The application: a page, a JSON endpoint and its description."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import threading
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response

from herdner import __version__
from herdner.corpora.formats import WRITABLE
from herdner.inference.registry import BACKENDS, describe_backend, make_backend
from herdner.integrations.serve.guard import Guard
from herdner.integrations.serve.limits import Limits
from herdner.integrations.serve.metrics import CONTENT_TYPE, Figures, Measured
from herdner.integrations.serve.pool import Busy, Fault, Gone, OutOfTime, Pool, Refused
from herdner.integrations.serve.schema import (
    LONG,
    MOST_BACKENDS,
    MOST_TEXTS,
    OPTIONS,
    About,
    BackendAbout,
    Explained,
    ExplainRequest,
    FileRequest,
    Health,
    LimitsAbout,
    Problem,
    Tagged,
    TaggedTexts,
    TagRequest,
)
from herdner.integrations.serve.static import add_pages
from herdner.ner.known_names import Names
from herdner.ner.known_names.known import NamesLike
from herdner.ner.tagger import Tagger

BEGIN_WITH = ("sum-product", "viterbi")

_NEEDS = {"parquet": "pyarrow"}  # of formats that are not always there
_ENDINGS = {"text": "txt", "label-studio": "json", "doccano": "jsonl", "prodigy": "jsonl", "brat": "tar.gz"}
_DESCRIPTION = (
    "Finds the names in a text, consistently: the mentions of one name are softly linked to each other. Offsets count"
    " characters (Unicode code points), not bytes, and not JavaScript's UTF-16 units."
)
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": description}
    for status, description in {
        400: "Not JSON, or a host name that the server does not go by.",
        408: "The body did not arrive in time.",
        413: "The text or the body is too large.",
        422: "A field, a backend, an option or their combination is wrong: the message says which.",
        500: "Something failed here; the details are in the server's log alone.",
        503: "All workers are busy; ask again later.",
        504: "The work took longer than the time limit and was ended.",
    }.items()
}
_Asked = TagRequest | ExplainRequest | FileRequest
_LONGEST_PLACE = 200  # of the path to a field that is named in a message
_RETRY = {"Retry-After": "2"}


def create_app(
    model: str | os.PathLike[str] | Tagger = "en",
    *,
    backends: Sequence[str] = BEGIN_WITH,
    names: NamesLike | None = None,
    limits: Limits | None = None,
    hosts: Iterable[str] = (),
) -> FastAPI:
    """An ASGI application that tags by a model: a shipped name, a file, or a trained tagger.

    ``backends`` are those that the page begins with; ``names`` are known, as in `Tagger.pipe`; ``hosts`` are those of
    this machine, beside localhost and addresses, by which the server may be asked. Starts ``limits.n_workers``
    processes and waits until the first has loaded the model; they end with the application's lifespan. As these are
    spawned, a script calls this below ``if __name__ == "__main__":``.
    ValueError, in one line, where the model cannot be loaded or a backend is not known.
    """
    limits = limits or Limits()
    for name in backends:
        describe_backend(name)
    if not 1 <= len(backends) <= MOST_BACKENDS:
        raise ValueError(f"the page begins with 1 to {MOST_BACKENDS} backends, not {len(backends)}")
    known = None if names is None else Names.of(names)
    pool = Pool(model if isinstance(model, Tagger) else os.fspath(model), limits, known)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        pool.close()

    app = FastAPI(
        title="herdner",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,  # FastAPI's own pages load scripts from elsewhere; /docs is ours
        redoc_url=None,
        lifespan=lifespan,
    )
    figures = Figures()
    app.add_middleware(Guard, hosts=("localhost", *hosts), body_bytes=limits.body_bytes, seconds=limits.seconds)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.state.pool = pool
    add_pages(app)
    _add_figures(app, figures, pool)
    _add_service(app, pool, _about(pool, list(dict.fromkeys(backends)), limits), limits, figures)
    app.add_middleware(
        Measured, figures=figures, paths=frozenset(str(getattr(each, "path", "")) for each in app.routes)
    )
    return app


def _add_figures(app: FastAPI, figures: Figures, pool: Pool) -> None:
    health = Health(status="ok", version=__version__, model=str(pool.about["model"]))

    @app.get("/health", summary="Whether the service answers", tags=["service"])
    async def get_health() -> Health:
        return health

    @app.get("/metrics", include_in_schema=False)
    async def get_metrics() -> Response:
        return Response(figures.text(), media_type=CONTENT_TYPE)


def _add_service(app: FastAPI, pool: Pool, about: About, limits: Limits, figures: Figures) -> None:
    @app.get("/api/about", summary="The model, the backends and the limits", tags=["service"])
    async def get_about() -> About:
        return about

    @app.post(
        "/api/tag", response_model=Tagged | TaggedTexts, responses=_PROBLEMS, summary="Tag texts", tags=["service"]
    )
    async def post_tag(request: TagRequest, http: Request) -> Response:
        """Tags one text, or several, by one or more backends.

        All of them share the time limit; if one of them cannot tag the text, none is answered for. Entities are those
        of `Tagger.tag` with the same backend, options and seed.
        """
        answer = await _answered(pool, request, http, limits)
        figures.characters.inc(request.characters)
        return answer

    @app.post("/api/explain", response_model=Explained, responses=_PROBLEMS, summary="Explain a name", tags=["service"])
    async def post_explain(request: ExplainRequest, http: Request) -> Response:
        """Says why a name in a text has its label.

        What features, transitions and links add to the log-odds of the label: those of `Tagger.explain` with the same
        backend, options and seed.
        """
        return await _answered(pool, request, http, limits)

    @app.post("/api/file", responses=_PROBLEMS, summary="Write a file", tags=["service"], response_class=Response)
    async def post_file(request: FileRequest, http: Request) -> Response:
        """Writes a text with its names as a file, in any format that herdner writes."""
        answered = await _answered(pool, request, http, limits)
        if answered.status_code != 200:  # nobody waits for it
            return answered
        answer = json.loads(bytes(answered.body))
        name = f"herdner.{_ENDINGS.get(request.format, request.format)}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(base64.b64decode(answer["base64"]), media_type="application/octet-stream", headers=headers)


async def _answered(pool: Pool, request: _Asked, http: Request, limits: Limits) -> Response:
    """What a worker answers, or the HTTPException that says why it does not. A thread waits for it; meanwhile somebody
    listens whether the client leaves.
    """
    gone = threading.Event()

    async def listen() -> None:
        while (await http.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    listener = asyncio.create_task(listen())
    try:
        return await run_in_threadpool(_answer, pool, request, limits, gone)
    finally:
        listener.cancel()


def _answer(pool: Pool, request: _Asked, limits: Limits, gone: threading.Event) -> Response:
    if (n := request.characters) > limits.characters:
        raise HTTPException(413, f"the text has {n:,} characters; this server takes at most {limits.characters:,}")
    try:
        # What was left out stays out, so that the backend's own options hold.
        asked = request.model_dump_json(exclude_none=True).encode()
        answer = pool.run(asked, is_long=request.cost > LONG, gone=gone)
        return Response(answer, media_type="application/json")
    except Refused as error:
        raise HTTPException(422, " ".join(str(error).split())) from None
    except Busy:
        raise HTTPException(503, "all workers are busy; ask again in a moment", _RETRY) from None
    except Gone:
        return Response(status_code=499)  # which nobody reads
    except OutOfTime:
        raise HTTPException(
            504, f"not done within {limits.seconds:g} seconds, and ended; send less text, or ask for fewer sweeps"
        ) from None
    except Fault as fault:
        raise RuntimeError(f"a worker failed\n{fault}") from None


def _about(pool: Pool, chosen: list[str], limits: Limits) -> About:
    described = [describe_backend(name) for name in BACKENDS]
    return About(
        version=__version__,
        **pool.about,
        chosen=chosen,
        backends=[
            BackendAbout(
                name=entry.name,
                summary=entry.summary,
                links=make_backend(entry.name).capabilities.linked,
                options=[option.name for option in entry.options if option.name in OPTIONS],
            )
            for entry in described
        ],
        formats=[name for name in WRITABLE if name not in _NEEDS or find_spec(_NEEDS[name])],
        limits=LimitsAbout(
            characters=limits.characters,
            body_bytes=limits.body_bytes,
            texts=MOST_TEXTS,
            backends=MOST_BACKENDS,
            seconds=limits.seconds,
            workers=limits.n_workers,
        ),
    )


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    """What is wrong with a request, in one line that does not repeat what was sent."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return JSONResponse({"detail": f"the body is not JSON: {first['ctx']['error']}"}, 400)
    place = ""
    for part in first["loc"][1:]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    detail = f"{place[:_LONGEST_PLACE] or 'body'}: {first['msg']}"
    return JSONResponse({"detail": detail.encode("utf-8", "backslashreplace").decode()}, 422)
