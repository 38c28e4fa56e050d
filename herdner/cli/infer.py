"""Command ``herdner infer``: inference on a graph file of the UAI competitions."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.common import open_output, parse_backend, print_note, show_activity
from herdner.cli.usage import UsageError, check_output, parse_options

if TYPE_CHECKING:
    import numpy as np

    from herdner.graph import FactorGraph
    from herdner.inference import Backend, Result
    from herdner.inference.record import Record

_DEFAULT_SECONDS = 60.0
_RESERVE_SECONDS = 1.0  # for the start of the process and the output
_MOST_SHOWN = 8  # factors or variables in a message
_BETHE = "the Bethe approximation of log10 Z, which is exact if the factors form no cycles"
_LOG_Z_NOTES = {
    "belief-propagation": _BETHE, "mean-field": "a lower bound on log10 Z", "sum-product": _BETHE
}  # fmt: skip
InferenceTask = Literal["MAR", "PR", "MPE", "samples"]


@command
def infer(
    graph: Annotated[Path, typer.Argument(metavar="FILE", help="Graph file: .uai (may be compressed) or .npz.")],
    evidence: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Observed variables and their states, a .evid file.")] = None,
    task: Annotated[InferenceTask, typer.Option(
        case_sensitive=False, help="MAR: marginals of all variables; PR: log10 of the partition function; MPE: the "
        "most probable joint state; samples: one joint state per line.")] = "MAR",
    backend: Annotated[str, typer.Option(
        "--backend", "-b", help="Inference backend (see `herdner backends`).")] = "auto",
    set_: opt.BackendSetOption = None,
    seconds: Annotated[float | None, typer.Option(
        help="Time limit of the command, without its start of about a second. Backends without the option `seconds` "
        "are repeated with more sweeps until the time is over [default: 60 for backends with the option `seconds`, "
        "except `exact`; otherwise none].")] = None,
    variable: Annotated[list[str] | None, typer.Option(
        metavar="N", help="For --task MAR: variable to print, counted from 0, or its name in a .npz file; may be "
        "repeated [default: all]. `dogs` optimises its scan for these variables.")] = None,
    truth: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Result file of the same task; print the difference from it on stderr.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="Number of joint states for --task samples.")] = 1000,
    seed: opt.SeedOption = 0,
    output: Annotated[str | None, typer.Option(
        "--output", "-o", help="File to write [default: standard output].")] = None,
) -> None:  # fmt: skip
    """Compute marginals, the partition function, the most probable state or samples of a Markov random field.

    Results have the format of the UAI inference competitions and include the observed variables. Ctrl-C prints the best
    result so far, if there is one.
    """
    from herdner.graph.files import load_graph
    from herdner.graph.uai_files import read_evidence, read_uai
    from herdner.inference import Interrupted

    began = perf_counter()
    check_output(output, [graph, evidence, truth])
    whole = load_graph(graph) if graph.suffix == ".npz" else read_uai(graph)
    observed = {} if evidence is None else read_evidence(evidence, whole)
    chosen = _parse_variables(variable, task, whole)
    expected = None if truth is None else _read_truth(truth, task, whole)
    targets = None if chosen is None else [v - sum(each < v for each in observed) for v in chosen if v not in observed]
    remaining = _remaining_seconds(seconds, backend, began)
    engine = _make_backend(backend, set_, remaining, seconds is not None, task, samples, targets)
    is_interrupted = False
    try:
        result = _run(engine, whole, observed, graph, evidence, task, seed)
    except Interrupted as interrupt:
        if not _has_answer(interrupt.result, task):
            raise
        is_interrupted, result = True, interrupt.result
    else:
        _print_notes(result, task, backend if len(observed) < whole.n_variables else "exact", samples)
    values = _values(task, result, whole, observed, backend, samples)
    text = _format(task, values, whole, chosen)
    if expected is not None:
        print_note(f"{truth}: {_difference(task, values, expected, whole, chosen)}")
    with open_output(output) as stream:
        stream.write(text)
    if is_interrupted:
        raise KeyboardInterrupt("interrupted; the output is the best result so far")


def _has_answer(result: Result, task: InferenceTask) -> bool:
    """Return True if a result contains the values that the task ``task`` prints."""
    if task == "samples":
        return result.samples is not None and result.samples.shape[1] > 0
    needed = {"MAR": result.marginals, "PR": result.log_z, "MPE": result.state}
    return needed[task] is not None


def _run(
    engine: Backend, whole: FactorGraph, observed: dict[int, int], graph: Path, evidence: Path | None,
    task: InferenceTask, seed: int,
) -> Result:  # fmt: skip
    """Condition a graph on the observed variables; run a backend on the conditioned graph and return its result.

    Raises:
        GraphFileError: The evidence has probability 0, or the graph has no possible joint state.
        UnsupportedGraph: The backend does not support the graph.
    """
    from herdner.graph.files import GraphFileError
    from herdner.graph.graph import ImpossibleGraph, UnsupportedGraph
    from herdner.inference.backends.exact import Exact

    try:
        with show_activity("inference"):
            remaining = whole.condition(observed)
            if not remaining.n_variables:  # no backend is needed, and none is named in a note
                engine = Exact(n_samples=getattr(engine, "n_samples", 0))
                return replace(engine.infer(remaining, seed, record=_record(engine, task)), method=None)
            return engine.infer(remaining, seed, record=_record(engine, task))
    except ImpossibleGraph:
        raise GraphFileError(_impossible_text(whole, observed, graph, evidence)) from None
    except UnsupportedGraph as error:
        if not observed:
            raise
        raise UnsupportedGraph(f"{error} (variables are numbered from 0 without the observed ones)") from None


def _impossible_text(whole: FactorGraph, observed: dict[int, int], graph: Path, evidence: Path | None) -> str:
    """Return the error message for evidence with probability 0, or for a graph without possible joint states."""
    from herdner.base.extras import MissingExtra, install_advice
    from herdner.graph.tables import compile_tables
    from herdner.inference.satisfiability import find_contradiction

    try:
        with show_activity("search for the contradiction"):
            found = find_contradiction(compile_tables(whole), observed)
    except (MissingExtra, MemoryError):
        found = None
    has_evidence = bool(observed) and (found is None or bool(found.variables))
    if has_evidence:
        text = f"{evidence}: the evidence has probability 0, because zeros of factors exclude every joint state with it"
    else:
        text = f"{graph}: every joint state has probability 0, because each one is excluded by a zero of some factor"
    if found is None:
        return f"{text}; to see which, install python-sat ({install_advice('pysat')})"
    shown = ", ".join(f"({' '.join(map(str, scope))})" for scope in found.scopes[:_MOST_SHOWN])
    shown += f" and {len(found.scopes) - _MOST_SHOWN} more" if len(found.scopes) > _MOST_SHOWN else ""
    if not has_evidence:
        return f"{text}; these factors suffice, named by their variables: {shown}"
    variables = " ".join(map(str, found.variables[:_MOST_SHOWN])) + " .." * (len(found.variables) > _MOST_SHOWN)
    return f"{text}; the observed variables {variables} contradict the factors of the variables {shown}"


def _print_notes(result: Result, task: InferenceTask, backend: str, n_samples: int) -> None:
    """Print notes on stderr: method, missing convergence, certificate, bounds on log10 Z, and a small sample count."""
    if result.method is not None:
        print_note(f"{backend}: {result.method}, {result.seconds:.1f} s")
    elif result.converged is False:  # the method of `auto` names it
        print_note(
            f"{backend}: not converged after {result.n_updates:,} updates, so the result may be inaccurate; try a"
            " smaller --set damping, a larger --set n_sweeps, more --seconds, or the backend auto"
        )
    if result.certificate is not None:
        print_note(f"{backend}: {result.certificate}")
    if task == "PR" and backend in _LOG_Z_NOTES:
        print_note(f"{backend}: the result is {_LOG_Z_NOTES[backend]}")
    if task == "PR" and result.log_z_interval is not None:
        low, high = (bound / math.log(10) for bound in result.log_z_interval)
        print_note(f"{backend}: the 95 % interval of log10 Z is {low:.6g} to {high:.6g}")
    if result.log_z_bounds is not None:
        low, high = (bound / math.log(10) for bound in result.log_z_bounds)
        print_note(f"{backend}: log10 Z is at least {low:.12g} and at most {high:.12g}")
    if task == "samples" and result.samples is not None:
        n_drawn = math.prod(result.samples.shape[:2])
        if n_drawn < n_samples:
            print_note(f"{backend}: the time sufficed for {n_drawn} samples, not {n_samples}")


def _parse_variables(variables: list[str] | None, task: InferenceTask, graph: FactorGraph) -> list[int] | None:
    """Return the indices of the variables of ``--variable``, which are given by name or by index.

    Raises:
        UsageError: The task does not print single variables, or a variable does not exist.
    """
    if variables is None:
        return None
    if task != "MAR":
        raise UsageError(f"--variable requires --task MAR, got {task}")
    index = {name: v for v, name in enumerate(graph.names or ())}
    chosen: list[int] = []
    for text in variables:
        number = int(text) if text.isdecimal() and len(text) < 12 else -1
        v = index.get(text, number)
        if not 0 <= v < graph.n_variables:
            names = " or the name of a variable" if index else ""
            raise UsageError(f"--variable must be from 0 to {graph.n_variables - 1}{names}, got {text}")
        chosen.append(v)
    return chosen


def _remaining_seconds(seconds: float | None, backend: str, began: float) -> float | None:
    """Return the seconds left for inference: ``seconds``, minus a reserve, minus the seconds since ``began``.

    Raises:
        UsageError: The time limit is not a positive number.
    """
    if seconds is None:
        return None if backend == "exact" else _DEFAULT_SECONDS
    if not 0 < seconds < math.inf:
        raise UsageError(f"--seconds must be a positive number, got {seconds:g}")
    reserve = min(_RESERVE_SECONDS, 0.05 * seconds)
    return max(seconds - reserve - (perf_counter() - began), 0.1 * seconds)


def _record(engine: Backend, task: InferenceTask) -> Record | None:
    """Return the results that `auto` and `exact` have to record for a task; None for all other backends."""
    from herdner.inference.backends.auto import Auto
    from herdner.inference.backends.exact import Exact
    from herdner.inference.record import Record

    if isinstance(engine, (Auto, Exact)):
        return Record(best=task == "MPE", marginals=task == "MAR")
    return None


def _make_backend(
    name: str, pairs: list[str] | None, seconds: float | None, has_limit: bool, task: InferenceTask, n_samples: int,
    targets: list[int] | None,
) -> Backend:  # fmt: skip
    """Create the inference backend for a task of ``infer``.

    The time limit ``seconds`` is that of the user if ``has_limit``, else the default. The variables ``targets`` are
    those of the graph after conditioning.

    Raises:
        UsageError: The backend or an option is unknown, or a value is not valid.
    """
    from herdner.inference import BACKENDS, UnsupportedRecord, describe_backend
    from herdner.inference.time_limit import TimeLimited, length_option

    options = parse_options(pairs, "--set")
    known = [option.name for option in describe_backend(name).options] if name in BACKENDS else []
    n_samples = n_samples if task == "samples" else 0
    if n_samples and "n_samples" in known:
        options = {"n_samples": n_samples, **options}
    if "seconds" in known and seconds is not None:
        options = {"seconds": seconds, **options}
    if "targets" in known and str(options.get("targets", "")).startswith("variables"):
        raise UsageError("--set targets: use --variable N instead, where N is the index of the variable in the file")
    if "targets" in known and targets is not None:
        options = {"targets": f"variables({', '.join(map(str, targets))})", **options}
    engine = parse_backend(name, options)
    needs_samples = bool(n_samples) and "n_samples" not in known
    if not needs_samples and (not has_limit or "seconds" in known):
        return engine
    grows = length_option(engine)
    largest = getattr(engine, grows) if grows in options else None
    try:
        return TimeLimited(engine, seconds if has_limit else None, n_samples if needs_samples else 0, largest)
    except UnsupportedRecord:
        raise UsageError(
            f"--task samples requires a backend that draws samples, such as auto, exact, tempered or gibbs, got {name}"
        ) from None


def _values(
    task: InferenceTask, result: Result, graph: FactorGraph, observed: dict[int, int], backend: str, n_samples: int
) -> np.ndarray:
    """Return the result of a task, in which the observed variables have their observed states.

    Returns:
        float64[V, K] for the task MAR, float64[] (log Z) for PR, int32[V] for MPE, and int32[N, V] for samples.

    Raises:
        UsageError: The backend does not compute this result.
    """
    import numpy as np

    from herdner.graph.graph import insert_observed
    from herdner.graph.tables import compile_tables

    sizes = compile_tables(graph).sizes
    if task == "PR":
        if result.log_z is None:
            computes = "does not compute" if result.log_z_bounds is None else "computes only bounds on"
            raise UsageError(
                f"--task PR: {backend} {computes} the partition function; use the backend exact or annealed-importance"
            )
        return np.array(result.log_z)
    if task == "MAR":
        if result.marginals is None:
            raise UsageError(f"--task MAR: {backend} does not compute marginals; use the backend exact or sum-product")
        return insert_observed(result.marginals, observed, int(sizes.max(initial=1)))
    if task == "MPE":
        return insert_observed(result.state, observed).astype(np.int32)
    assert result.samples is not None
    n_drawn = math.prod(result.samples.shape[:2])
    drawn = result.samples.swapaxes(0, 1).reshape(n_drawn, result.samples.shape[2])  # one of each chain in turn
    return insert_observed(drawn[:n_samples].T, observed).T.astype(np.int32)


def _format(task: InferenceTask, values: np.ndarray, graph: FactorGraph, variables: list[int] | None) -> str:
    """Return the values of a task (see `_values`) as text in the format of the UAI competition."""
    from herdner.graph.tables import compile_tables
    from herdner.graph.uai_files import format_log_z, format_marginals, format_state

    if task == "PR":
        return format_log_z(float(values))
    if task == "MAR":
        chosen = slice(None) if variables is None else variables
        return format_marginals(values[chosen], compile_tables(graph).sizes[chosen])
    if task == "MPE":
        return format_state(values.tolist())
    return "".join(" ".join(map(str, state)) + "\n" for state in values.tolist())


def _read_truth(path: Path, task: InferenceTask, graph: FactorGraph) -> np.ndarray:
    """Read the result file of ``--truth``, and return its values in the form that `_values` returns."""
    import numpy as np

    from herdner.graph.uai_files import read_log_z, read_marginals, read_state

    if task == "MAR":
        rows = read_marginals(path, graph)
        values = np.zeros((len(rows), max(map(len, rows), default=1)))
        for v, row in enumerate(rows):
            values[v, : len(row)] = row
        return values
    if task == "PR":
        return np.array(read_log_z(path))
    if task == "MPE":
        return np.array(read_state(path, graph), np.int32)
    raise UsageError(f"--truth requires --task MAR, PR or MPE, got {task}")


def _difference(
    task: InferenceTask, values: np.ndarray, expected: np.ndarray, graph: FactorGraph, variables: list[int] | None
) -> str:
    """Describe the difference between the values of a task and those of the file of ``--truth``."""
    import numpy as np

    if task == "MAR":
        chosen = slice(None) if variables is None else variables
        distances = 0.5 * np.abs(values - expected)[chosen].sum(axis=1)
        mean, largest = (distances.mean(), distances.max()) if len(distances) else (0.0, 0.0)
        return f"the total variation distance of the marginals is {mean:.3g} on average and at most {largest:.3g}"
    if task == "PR":
        return f"log10 of the partition function differs by {_log10_ratio(float(values), float(expected)):.3g}"
    difference = _log10_ratio(float(graph.log_potential(values)), float(graph.log_potential(expected)))
    return f"log10 of the probability of the joint state differs by {difference:.3g}"


def _log10_ratio(log_value: float, log_other: float) -> float:
    """Return log10(a / b) from the natural logarithms of a and b, or 0 if both are -inf."""
    return 0.0 if log_value == log_other else (log_value - log_other) / math.log(10)
