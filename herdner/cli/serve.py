"""Command ``herdner serve``: a local web page and a JSON service that tag texts."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from herdner.base.extras import check_extra
from herdner.base.interrupts import record_interrupts, was_interrupted
from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.common import parse_names, print_message
from herdner.cli.usage import UsageError, usage_errors

if TYPE_CHECKING:
    import uvicorn


@command
def serve(
    model: opt.ModelOption = "en",
    host: Annotated[str, typer.Option(
        "--host", help="Address to listen on. Only this machine can reach the default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 selects a free port.")] = 8765,
    backend: Annotated[list[str] | None, typer.Option(
        "--backend", "-b", help="Backend that the page shows first; may be repeated [default: sum-product, "
        "viterbi].")] = None,
    names: opt.NamesOption = None,
    names_strength: opt.StrengthOption = None,
    names_hard: opt.HardOption = False,
    names_fold_case: opt.FoldCaseOption = False,
    jobs: Annotated[int, typer.Option(
        "--jobs", "-j", min=1, max=64, help="Number of processes that tag; each takes 200 MB.")] = 2,
    max_characters: Annotated[int, typer.Option(
        "--max-characters", min=1, max=10000_000, help="Longest text to accept, in characters.")] = 100_000,
    time_limit: Annotated[float, typer.Option(
        "--time-limit", min=0.1, help="Seconds after which a request is cancelled.")] = 20.0,
    allow_host: Annotated[list[str] | None, typer.Option(
        "--allow-host", metavar="NAME", help="Host name that browsers may use besides localhost; may be "
        "repeated.")] = None,
) -> None:  # fmt: skip
    """Serve a web page that tags texts, and a JSON service at POST /api/tag (described at /docs). Ctrl-C ends it.

    With --verbose, each request is logged on stderr: client, method, path, status and time, but no texts.
    """
    from herdner.inference.registry import describe_backend

    with usage_errors(kind=ImportError):
        check_extra("fastapi", "serve needs FastAPI")
        check_extra("uvicorn", "serve needs uvicorn")
    with usage_errors():
        for name in backend or ():
            describe_backend(name)  # refuses unknown names before the model is loaded
    known_names = parse_names(names, names_strength, names_hard, names_fold_case)
    with open_socket(host, port) as listener:
        from herdner.integrations.serve import Limits, create_app
        from herdner.integrations.serve.app import DEFAULT_BACKENDS
        from herdner.integrations.serve.connections import server_config

        limits = Limits(characters=max_characters, seconds=time_limit, n_workers=jobs)
        app = create_app(
            model,
            backends=backend or DEFAULT_BACKENDS,
            names=known_names,
            limits=limits,
            hosts=[host, *(allow_host or ())],
        )
        record_interrupts()  # an interrupt while asyncio starts would leave asyncio half initialised
        print_address(listener, model)
        try:
            make_server(server_config(app)).run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn handles Ctrl-C and then raises it again
            return
        finally:
            app.state.pool.close()


def make_server(config: uvicorn.Config) -> uvicorn.Server:
    """Create a uvicorn server that stops at once if Ctrl-C arrived before its start.

    Args:
        config: Configuration of the server.

    Returns:
        The server.
    """
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            with super().capture_signals():
                self.should_exit = self.should_exit or was_interrupted()
                yield

    return Server(config)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the address ``host:port``.

    Args:
        host: Name or address of the host.
        port: Port; 0 selects a free port.

    Returns:
        The socket.

    Raises:
        UsageError: The host is unknown, or the address cannot be used.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise UsageError(f"--host {host!r}: no such address; use 127.0.0.1 for this machine only") from None
    try:
        return socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        reason = f"{error.strerror or error}".lower()
        raise UsageError(f"cannot listen on {host}:{port}: {reason}; choose another --port or --host") from None


def print_address(listener: socket.socket, model: str) -> None:
    """Print the address of the web service, and a warning if other machines can reach it.

    Args:
        listener: The socket.
        model: Name of the model.
    """
    address, port = listener.getsockname()[:2]
    host = f"[{address}]" if ":" in address else address
    print(f"herdner: model {model} at http://{host}:{port} (Ctrl-C ends it)", file=sys.stderr, flush=True)
    if not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        print_message("warning: other machines can reach this service, which has neither passwords nor encryption")
