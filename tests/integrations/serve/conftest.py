"""A service with the shipped model, as an application and behind a real port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import herdner

pytest.importorskip("fastapi", reason="needs FastAPI: pip install '.[serve]'")
pytest.importorskip("httpx", reason="needs httpx, by which FastAPI's test client asks")
uvicorn = pytest.importorskip("uvicorn", reason="needs uvicorn: pip install '.[serve]'")


@pytest.fixture(scope="session")
def tagger() -> herdner.Tagger:
    return herdner.load("en")


@pytest.fixture(scope="session")
def app() -> Iterator[Any]:
    from herdner.integrations.serve import Limits, create_app

    app = create_app("en", limits=Limits(characters=8_000, n_workers=1), hosts=["herdner.example"])
    yield app
    app.state.pool.close()


@pytest.fixture(scope="session")
def client(app: Any) -> Any:
    from fastapi.testclient import TestClient

    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


@pytest.fixture(scope="session")
def address(app: Any) -> Iterator[str]:
    """``http://127.0.0.1:PORT`` of the application behind uvicorn."""
    listener = socket.create_server(("127.0.0.1", 0))
    from herdner.integrations.serve.connections import server_config

    config = server_config(app)
    config.lifespan = "off"
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join()
