"""``herdner serve`` as its user meets it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from functools import partial

import pytest
from commands import Call, exit_code, one_line
from data import ELSEWHERE
from patience import PATIENCE

pytest.importorskip("fastapi", reason="needs FastAPI: pip install '.[serve]'")
httpx = pytest.importorskip("httpx", reason="needs httpx, to ask the server")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_it_says_where_it_listens_and_ctrl_c_ends_it_quietly() -> None:
    command = [sys.executable, "-m", "herdner", "serve", "--port", "0", "--jobs", "1"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ELSEWHERE,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        assert process.stderr is not None
        address = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
        assert address
        text = {"text": "Ada Lovelace sang in Kenya."}
        answer = httpx.post(f"{address[0]}/api/tag", json=text, timeout=PATIENCE).json()
        assert "Kenya" in [entity["text"] for entity in answer["results"][0]["entities"]]
        # A body that is refused before it is read does not keep the server from answering others.
        large = httpx.post(f"{address[0]}/api/tag", content=b"x" * 2_000_000, timeout=PATIENCE)
        assert large.status_code == 413
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert (process.returncode, out, errors) == (0, "", "")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_it_at_whatever_moment_of_its_start() -> None:
    """Also where it says where it listens, and uvicorn does not listen to signals yet."""
    # As `python -m herdner` does, and tells when Python's own start is over.
    program = "import os; from herdner.__main__ import exit_on_interrupt, main; exit_on_interrupt();"
    program += "os.write(1, b'.'); main()"
    command = [sys.executable, "-c", program, "serve", "--port", "0", "--jobs", "1"]
    for moment in (0.0, 0.5, 1.0, 2.0, "said", "said", "said"):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ELSEWHERE,
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.read(1) == "."
            if moment == "said":
                process.stderr.readline()
            else:
                time.sleep(moment)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        if process.returncode == 0:  # it was up, and said so
            assert re.fullmatch(r"(herdner: model en at .*\n)?", errors), moment
        else:
            assert (exit_code(process.returncode), errors) == (130, "herdner: interrupted\n"), moment


def test_a_ctrl_c_that_python_lost_ends_the_server_as_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.responses import PlainTextResponse

    from herdner.base import interrupts
    from herdner.cli.serve import make_server
    from herdner.integrations.serve.connections import server_config

    monkeypatch.setattr(interrupts, "_interrupts", [signal.SIGINT])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = make_server(server_config(PlainTextResponse("here")))
        server.run(sockets=[listener])  # and returns
    assert server.should_exit


def test_a_port_in_use_is_one_line(call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        message = one_line(call("serve", "--port", taken.getsockname()[1]), 2)
    assert "choose another --port" in message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["--backend", "viterbo"], "there is no backend 'viterbo'", 2),
        (["--model", "missing.model"], "there is no model", 1),
        (["--host", "no.such.host.invalid"], "no such address", 2),
        (["--port", "99999"], "--port", 2),
        (["--jobs", "0"], "--jobs", 2),
        (["--time-limit", "0"], "--time-limit", 2),
    ],
)
def test_wrong_use_is_one_line(call: Call, arguments: list[str], said: str, code: int) -> None:
    assert said in one_line(call("serve", "--port", 0, *arguments), code)


def test_without_fastapi_it_says_what_to_install(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install '.[serve]'" in one_line(call("serve"), 2)


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_a_warning_where_others_can_reach_it(capsys: pytest.CaptureFixture[str], host: str, warned: bool) -> None:
    from herdner.cli.serve import open_socket, print_address

    with open_socket(host, 0) as listener:
        print_address(listener, "en")
    lines = capsys.readouterr().err.splitlines()
    assert f"http://{host}:" in lines[0]
    assert any("warning: other machines" in line for line in lines) == warned
    assert len(lines) == 1 + warned
