"""Ctrl-C stops a long run within a second of work, and the exception holds the records until then."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from data import ELSEWHERE
from patience import PATIENCE

from herdner.graph import ising
from herdner.inference import Interrupted
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.record import Record

RECORD = Record(trace=True, every=100, rao_blackwell=True, table_counts=True)
FIELD = np.random.default_rng(0).normal(size=(20, 20))

CHILD = """
import json, os, signal, threading, time
from collections import Counter
import numpy as np
from herdner.graph import ising
from herdner.inference import Interrupted
from herdner.inference.backends.gibbs import *
from herdner.inference.gibbs.run import Run
from herdner.inference.gibbs import *
from herdner.inference.record import Record
from herdner.graph.scan import checkerboard_scan
graph = ising(0.3, np.random.default_rng(0).normal(size=(20, 20)))
record = Record(trace=True, every=100, rao_blackwell=True, table_counts=True)
plan = {plan}
end_piece, pieces = Run.end_piece, Counter()
def counted_end(run, *rest, **options):
    end_piece(run, *rest, **options)
    pieces[run] += 1
    if pieces[run] == 12 and sum(n >= 12 for n in pieces.values()) == plan.n_chains:
        print("begun", flush=True)  # and the pieces, which grow, are as long as they get
Run.end_piece = counted_end
# When the signal comes the system writes a byte here, whatever Python is doing.
arrival, wakeup = os.pipe()
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup)
came = []
watch = threading.Thread(target=lambda: came.append((os.read(arrival, 1), time.process_time())), daemon=True)
watch.start()
try:
    plan.infer(graph, 1)
except Interrupted as stopped:
    now, result = time.process_time(), stopped.result
    watch.join()
    print(json.dumps({{
        "work": now - came[0][1],
        "message": str(stopped),
        "n_updates": result.n_updates,
        "log_potential": [result.log_potential, float(graph.log_potential(result.state))],
        "trace": np.round(result.trace[:, :200], 9).tolist(),
        "lengths": [result.trace.shape[1], result.samples.shape[1], len(result.sample_sweeps)],
        "finite": bool(np.isfinite(result.trace).all()),
        "sums": [float(result.marginals.sum()), float(result.rao_blackwell.sum()), float(result.table_counts[1].sum())],
        "marginals": result.marginals[:5, 1].tolist(),
        "lp": bool(result.trace[:, result.sample_sweeps].shape == result.samples.shape[:2]),
    }}))
"""

PLANS = {
    "one thread": "Gibbs(4_000_000, record=record)",
    "threads": "Gibbs(4_000_000, scan=checkerboard_scan(), n_threads=2, record=record)",
    "herded": "Gibbs(4_000_000, sharing=blanket_sharing(), record=record)",
    "chains": "Gibbs(2_000_000, n_chains=3, n_threads=2, record=record)",
    "quasi-random": "Gibbs(2**22 - 1, driving=LFSR(), record=record)",
}


def interrupted(plan: str) -> dict:
    """Return the result of a run that is stopped when all its chains are under way."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(plan=plan)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=ELSEWHERE,
    )  # fmt: skip
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n", child.communicate()[1]
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE)
    finally:
        child.kill()
    assert child.returncode == 0, err
    return json.loads(out)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("name", PLANS)
def test_ctrl_c_keeps_what_was_recorded(name):
    found = interrupted(PLANS[name])
    assert found["work"] < 1.0, "seconds of the processor, whoever else keeps it busy"
    n_chains = 3 if name == "chains" else 1
    sweeps, kept, numbered = found["lengths"]
    assert sweeps > 0, "it had begun"
    assert found["n_updates"] >= n_chains * sweeps * 400
    assert kept == numbered == -(-sweeps // 100)
    assert found["lp"], "samples and trace belong together"
    assert found["finite"]
    assert found["message"].startswith(f"stopped after {found['n_updates']} updates")
    assert found["log_potential"][0] == pytest.approx(found["log_potential"][1], rel=1e-9)
    assert found["sums"] == pytest.approx([400, 400, 0.3 * 760])  # each edge counts as its scale
    if name == "one thread":
        whole = Gibbs(sweeps, record=RECORD).infer(ising(0.3, FIELD), 1)
        assert whole.trace[0, :200].round(9).tolist() == found["trace"][0]
        assert found["marginals"] == pytest.approx(whole.marginals[:5, 1].tolist(), abs=1e-12)


def test_an_interrupt_that_comes_at_once_gives_the_start(monkeypatch):
    """Nothing was recorded yet: averages are None, and the state is allowed."""
    from herdner.inference.gibbs import run as gibbs_run

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gibbs_run.Run, "begin_piece", stopped)
    for n_chains in (1, 3):
        with pytest.raises(Interrupted) as caught:
            Gibbs(10, n_chains=n_chains, record=RECORD).infer(ising(0.3, FIELD), 1)
        result = caught.value.result
        assert result.n_updates == 0
        assert result.marginals is None
        assert result.trace.shape == (n_chains, 0)
        assert result.log_potential == pytest.approx(ising(0.3, FIELD).log_potential(result.state))
