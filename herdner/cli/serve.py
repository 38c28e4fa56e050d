"""``herdner serve``: a page on this machine that tags texts by several backends side by side, and a JSON service."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from herdner.base.extras import MissingExtra, check_extra
from herdner.base.interrupts import record_interrupts, was_interrupted
from herdner.cli.common import command, complain
from herdner.cli.names import FoldCaseOption, HardOption, NamesOption, StrengthOption, known_names
from herdner.cli.options import ModelOption
from herdner.cli.usage import UsageError, wrong_use

if TYPE_CHECKING:
    import uvicorn


@command
def serve(
    model: ModelOption = "en",
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; the default is reached from this machine alone.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="0: any that is free.")] = 8765,
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend", "-b", help="A backend that the page begins with; may be repeated [sum-product, viterbi]."
        ),
    ] = None,
    names: NamesOption = None,
    names_strength: StrengthOption = None,
    names_hard: HardOption = False,
    names_fold_case: FoldCaseOption = False,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, max=64, help="Processes that tag, 200 MB each, one text at a time.")
    ] = 2,
    max_characters: Annotated[
        int, typer.Option("--max-characters", min=1, max=10_000_000, help="Of a text; longer ones are refused.")
    ] = 100_000,
    time_limit: Annotated[
        float, typer.Option("--time-limit", min=0.1, help="Seconds for a request; work that takes longer is ended.")
    ] = 20.0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="Host name by which browsers may ask; may be repeated [localhost]."
        ),
    ] = None,
) -> None:
    """Show a page that tags texts, and answer POST /api/tag in JSON (described at /docs). Ctrl-C ends it."""
    try:
        check_extra("fastapi", "serve needs FastAPI")
        check_extra("uvicorn", "serve needs uvicorn")
    except MissingExtra as error:
        raise UsageError(str(error)) from None
    check_backends(backend or ())
    known = known_names(names, names_strength, names_hard, names_fold_case)
    hosts = [*(allow_host or ()), *([] if _is_address(host) else [host])]
    with listening(host, port) as listener:
        from herdner.integrations.serve import Limits, create_app
        from herdner.integrations.serve.app import BEGIN_WITH
        from herdner.integrations.serve.connections import configured

        limits = Limits(characters=max_characters, seconds=time_limit, n_workers=jobs)
        app = create_app(model, backends=backend or BEGIN_WITH, names=known, limits=limits, hosts=hosts)
        record_interrupts()  # within asyncio's own beginning it would leave half of it behind
        say_where(listener, model)
        try:
            server_of(configured(app)).run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn has shut down, and hands on the Ctrl-C that made it
            return
        finally:
            app.state.pool.close()


def server_of(config: uvicorn.Config) -> uvicorn.Server:
    """uvicorn, which ends at once where a Ctrl-C came before it began to listen to them, and was lost."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            with super().capture_signals():
                self.should_exit = self.should_exit or was_interrupted()
                yield

    return Server(config)


def check_backends(names: Iterable[str]) -> None:
    """A backend that there is not is wrong use, found before a model is loaded."""
    from herdner.inference.registry import describe_backend

    with wrong_use():
        for name in names:
            describe_backend(name)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; UsageError, with what to do, where that is impossible."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise UsageError(f"--host {host!r}: no such address; 127.0.0.1 is this machine alone") from None
    try:
        return socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        reason = f"{error.strerror or error}".lower()
        raise UsageError(f"cannot listen on {host}:{port}: {reason}; choose another --port or --host") from None


def say_where(listener: socket.socket, model: str) -> None:
    """One line with the address; another where it is not of this machine alone."""
    address, port = listener.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    print(f"herdner: model {model} at http://{shown}:{port} (Ctrl-C ends it)", file=sys.stderr, flush=True)
    if not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        complain("warning: other machines can reach this, without a password and unencrypted; mind who is on the net")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
