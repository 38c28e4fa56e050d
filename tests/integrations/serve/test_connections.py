"""Connections that ask nothing, or take their time, do not keep others from an answer."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from patience import PATIENCE

pytest.importorskip("fastapi", reason="needs FastAPI: pip install '.[serve]'")
uvicorn = pytest.importorskip("uvicorn", reason="needs uvicorn: pip install '.[serve]'")
connections = pytest.importorskip("herdner.integrations.serve.connections")

ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """A service that answers "here", and waits a second for the headers of a request."""
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1.0)
    from starlette.responses import PlainTextResponse

    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = uvicorn.Server(connections.server_config(PlainTextResponse("here")))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()[:2]
    server.should_exit = True
    thread.join()


def answered(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address, timeout=PATIENCE) as client:
        client.sendall(ASK)
        return client.recv(1000)


def answer(client: socket.socket) -> bytes:
    found = b""
    while b"here" not in found:
        more = client.recv(1000)
        assert more
        found += more
    return found


def ended(client: socket.socket, within: float = PATIENCE) -> bool:
    """Return True if the server ends the connection in this number of seconds."""
    client.settimeout(within)
    try:
        return client.recv(1000) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("n", [101, connections.MAX_CONNECTIONS + 50])
def test_idle_connections_do_not_stop_the_service(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 10 * PATIENCE)  # they go on idling
    with ExitStack() as stack:
        for _ in range(n):
            stack.enter_context(socket.create_connection(address, timeout=PATIENCE))
        assert b"200 OK" in answered(address)


def test_a_connection_that_asks_nothing_ends(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as client:
        assert ended(client)


def test_headers_that_trickle_in_have_a_time_limit(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as client:
        client.sendall(ASK[:-2])
        for _ in range(40):  # lines, a tenth of a second apart
            try:
                client.sendall(b"X-A: b\r\n")
            except ConnectionError:
                return
            if ended(client, 0.1):
                return
    raise AssertionError("it goes on listening after four seconds")


def test_the_headers_of_a_second_request_have_it_too(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=PATIENCE) as client:
        for _ in range(3):
            client.sendall(ASK)
            assert b"here" in answer(client)
        client.sendall(ASK[:-2])
        assert ended(client)


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["MAX_CONNECTIONS", "MAX_CONNECTIONS_PER_CLIENT"])
def test_the_one_that_has_been_idle_longest_makes_room(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 60.0)
    monkeypatch.setattr(connections, limit, 3)
    with ExitStack() as stack:
        clients = []
        for _ in range(5):
            clients.append(stack.enter_context(socket.create_connection(address, timeout=PATIENCE)))
            time.sleep(0.05)
        assert [ended(client) for client in clients[:2]] == [True, True]
        assert [ended(client, 0.2) for client in clients[2:]] == [False, False, False]
        clients[2].sendall(ASK)
        clients[2].settimeout(PATIENCE)
        assert b"here" in answer(clients[2])


@pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="needs two addresses of this machine")
def test_connections_of_one_address_do_not_end_those_of_another(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 60.0)
    monkeypatch.setattr(connections, "MAX_CONNECTIONS_PER_CLIENT", 3)
    with ExitStack() as stack:
        try:
            other = socket.create_connection(address, timeout=PATIENCE, source_address=("127.0.0.2", 0))
        except OSError:
            pytest.skip("this machine has no address 127.0.0.2")
        stack.enter_context(other)
        for _ in range(10):
            stack.enter_context(socket.create_connection(address, timeout=PATIENCE))
        assert not ended(other, 0.5)
        other.settimeout(PATIENCE)
        other.sendall(ASK)
        assert b"here" in answer(other)


def test_headers_that_are_too_long_are_refused(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=PATIENCE) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 2 * connections.HEADER_BYTES)
        assert client.recv(1000).startswith(b"HTTP/1.1 400")


def test_what_strangers_send_is_not_logged(address: tuple[str, int]) -> None:
    """A line for each would fill a log or, where nobody reads it, the pipe: and the server would stop there."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logging.getLogger("uvicorn.error").addHandler(handler)
    try:
        for data in (b"\0\n\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"):
            with socket.create_connection(address, timeout=PATIENCE) as client:
                client.sendall(data)
                assert client.recv(1000).startswith(b"HTTP/1.1 400")
        assert b"200 OK" in answered(address)
    finally:
        logging.getLogger("uvicorn.error").removeHandler(handler)
    assert not records
