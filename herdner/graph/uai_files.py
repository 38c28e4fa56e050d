"""Graphs, evidence and results in the text formats of the UAI inference competitions; files are treated as untrusted.

A ``.uai`` file has a preamble (``MARKOV`` or ``BAYES``, the number of variables, their numbers of states, the number of
factors, and the scope of each factor) and then the table of each factor: its number of entries and the entries, which
are potentials of at least 0. The last variable of a scope changes fastest. A ``.evid`` file holds the number of
observed variables, then each variable and its state. A file of results begins with the name of its task: ``MAR``
(marginals), ``PR`` (log10 of the partition function) or ``MPE`` (most probable joint state). A file of samples has one
joint state per line. ``#`` begins a comment up to the end of the line. Files may be compressed (``.gz``, ``.bz2``,
``.xz``, ``.zst``, or a ``.zip`` archive of one file).
"""

from __future__ import annotations

import math
import os
import re
import zipfile
from collections.abc import Generator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from herdner.base.arrays import Floats, Int32s
from herdner.base.memory import check_memory
from herdner.graph.factors import TableFactors
from herdner.graph.files import GraphFileError
from herdner.graph.graph import FactorGraph
from herdner.graph.tables import compile_tables
from herdner.text.io.source import Source, create_file, read_chunks

MAX_CHARACTERS = 2**29  # largest length of an unpacked file
_BLOCK_CHARACTERS = 2**20
_BYTES_PER_CHARACTER = 24  # memory of the graph of a file of many small factors
_MARGIN = 0.01  # largest difference of a sum of printed probabilities from 1
_SPACE, _WORD = re.compile(r"\s"), re.compile(r"\S+")
_KINDS = ("MARKOV", "BAYES")


class _Tokens:
    """Tokens (numbers and words) of a file, read in order; error messages name the line of the token.

    The text is split block by block, because a list of all tokens would need ten times the memory of the text.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = str(path)
        pieces: list[str] = []
        length = 0
        is_zip = self.path.lower().endswith(".zip") and Path(path).is_file()
        source = Source(self.path, self.path, Path(path), None, replace=True)  # comments may have any encoding
        for piece in _unzip(self.path) if is_zip else read_chunks(source):
            length += len(piece)
            if length > MAX_CHARACTERS:
                raise GraphFileError(f"{self.path}: the file has more than {MAX_CHARACTERS} characters")
            pieces.append(piece)
        what = f"{self.path}, a text of {length:,} characters,"
        check_memory(_BYTES_PER_CHARACTER * length, what, "use a machine with more memory")
        self.text = "".join(pieces)
        del pieces
        if "#" in self.text:
            self.text = re.sub(r"#[^\n]*", "", self.text)  # comments, such as pyAgrum writes
        self.most = len(self.text) // 2 + 1  # at least the number of tokens
        self.block: list[str] = []
        self.begin = self.end = 0  # characters of the block
        self.place = 0  # index of the next token in the block
        self.fill()

    def fill(self) -> bool:
        """Split the next block of text into tokens if the current block is used up; return True if a token remains."""
        while self.place == len(self.block) and self.end < len(self.text):
            space = _SPACE.search(self.text, self.end + _BLOCK_CHARACTERS)
            self.begin, self.end = self.end, space.start() if space else len(self.text)
            self.block, self.place = self.text[self.begin : self.end].split(), 0
        return self.place < len(self.block)

    def error(self, message: str, place: int | None = None) -> GraphFileError:
        """Return an error whose message begins with the path and the line of a token.

        ``place`` is the index of the token in the block; the default is the latest token that was read.
        """
        index = self.place - 1 if place is None else place
        words = _WORD.finditer(self.text, self.begin, self.end)
        match = next(islice(words, index, None), None) if index >= 0 else None
        line = self.text.count("\n", 0, match.start() if match else None) + 1
        return GraphFileError(f"{self.path}:{line}: {message}")

    def word(self, what: str) -> str:
        """Return the next token of the file as text."""
        if not self.fill():
            raise self.error(f"the file ends where {what} should be")
        self.place += 1
        return self.block[self.place - 1]

    def integer(self, what: str, least: int, most: int) -> int:
        """Return the next token of the file as an integer from ``least`` to ``most``."""
        word = self.word(what)
        if not re.fullmatch(r"\d{1,18}", word) or not least <= int(word) <= most:
            allowed = f"an integer from {least} to {most}" if least < most else f"{least}"
            raise self.error(f"{what} must be {allowed}, got {word[:40]!r}")
        return int(word)

    def numbers(self, count: int, what: str) -> Floats:
        """Return the next ``count`` tokens of the file as numbers; each must be at least 0."""
        parts = [np.empty(0)]
        while count:
            if not self.fill():
                raise self.error(f"the file ends where {what} should be")
            words = self.block[self.place : self.place + count]
            try:
                values = np.array(words, np.float64)
            except ValueError:
                values = np.array([_number(word) for word in words])
            invalid = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
            if len(invalid):
                word, place = words[int(invalid[0])], self.place + int(invalid[0])
                raise self.error(f"{what} must be finite numbers of at least 0, got {word[:40]!r}", place)
            self.place, count = self.place + len(words), count - len(words)
            parts.append(values)
        return np.concatenate(parts)

    def end_of_file(self) -> None:
        """Raise an error if the file has more tokens."""
        if self.fill():
            raise self.error(f"expected the end of the file, got {self.block[self.place][:40]!r}", self.place)


def _unzip(path: str) -> Generator[str]:
    """Yield pieces of the text of the only file in a zip archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
            if len(names) != 1:
                raise GraphFileError(f"{path}: a zip archive must contain one file, got {len(names)}")
            with archive.open(names[0]) as stream:
                while piece := stream.read(2**20):
                    yield piece.decode("utf-8", "replace")
    except (GraphFileError, MemoryError):
        raise
    except Exception as error:  # zipfile raises many types for damaged files
        message = " ".join(str(error).split()) or type(error).__name__
        raise GraphFileError(f"{path}: the zip archive cannot be read ({message:.200})") from None


def _number(word: str) -> float:
    """Convert a word to a number, or to NaN if it is not a number."""
    try:
        return float(word)
    except ValueError:
        return math.nan


def read_uai(path: str | os.PathLike[str]) -> FactorGraph:
    """Read a graph from a ``.uai`` file.

    Args:
        path: Path of the file, possibly compressed.

    Returns:
        The graph. Factors whose tables have the same shape form a group, in the order of the file.

    Raises:
        GraphFileError: The file is malformed. The message is one line that names the file and the line number.
        FormatError: The file cannot be read.
        NotEnoughMemory: The graph of a file of this length may not fit into memory.
        ValueError: The log-potentials could add up to more than 1e300.
    """
    tokens = _Tokens(path)
    kind = tokens.word("MARKOV or BAYES")
    if kind.upper() not in _KINDS:
        raise tokens.error(f"the file must begin with MARKOV or BAYES, got {kind[:40]!r}")
    room = tokens.most  # upper limit of all counts: a malformed file cannot request more memory than its length
    n = tokens.integer("the number of variables", 0, room)
    sizes = np.array([tokens.integer("a number of states", 1, 2**31 - 1) for _ in range(n)], np.int32)
    n_factors = tokens.integer("the number of factors", 0, room)
    scopes = [_scope(tokens, n) for _ in range(n_factors)]
    groups: dict[tuple[int, ...], tuple[list[list[int]], list[Floats]]] = {}
    for scope in scopes:
        shape = tuple(int(sizes[v]) for v in scope)
        count = tokens.integer("the number of table entries", 0, room)
        if count != math.prod(shape):
            raise tokens.error(f"the table of the variables {scope} must have {math.prod(shape)} entries, got {count}")
        group_scopes, tables = groups.setdefault(shape, ([], []))
        group_scopes.append(scope)
        tables.append(tokens.numbers(count, "table entries").reshape(shape))
    tokens.end_of_file()
    with np.errstate(divide="ignore"):
        factors = [
            TableFactors(np.array(group_scopes, np.int32).reshape(len(tables), len(shape)), np.log(tables))
            for shape, (group_scopes, tables) in groups.items()
        ]
    return FactorGraph(sizes, factors)


def _scope(tokens: _Tokens, n: int) -> list[int]:
    """Read the scope of a factor: the number of its variables, then their indices, each below ``n``."""
    arity = tokens.integer("the number of variables of a factor", 0, min(n, 32))
    scope = [tokens.integer("a variable", 0, n - 1) for _ in range(arity)]
    if len(set(scope)) < arity:
        raise tokens.error(f"the scope {scope} names a variable twice")
    return scope


def write_uai(path: str | os.PathLike[str], graph: FactorGraph) -> None:
    """Write a graph to a ``.uai`` file of type MARKOV; if an error occurs, an existing file remains unchanged.

    Args:
        path: Path of the file. The file is compressed if the path has an extension such as ".gz".
        graph: A graph of discrete variables and tables. Its log-potentials must lie between -700 and 700, or be -inf.

    Raises:
        ValueError: The graph has other domains or factors, or a finite log-potential is outside -700 to 700.
        OSError: The file cannot be written.
    """
    compiled = compile_tables(graph)
    scopes: list[str] = []
    tables: list[str] = []
    for group in compiled.factors:
        for scope, table, scale in zip(group.scopes.tolist(), group.table_of_factor, group.scale, strict=True):
            values = group.tables[table].ravel() * scale
            if (np.abs(values[np.isfinite(values)]) > 700).any():
                raise ValueError(
                    f"the factor of the variables {scope} has log-potentials beyond +-700, too large for .uai files;"
                    " use save_graph"
                )
            scopes.append(" ".join(map(str, [len(scope), *scope])))
            tables.append(f"{values.size}\n {' '.join(map(repr, np.exp(values).tolist()))}\n")
    head = ["MARKOV", str(len(compiled.sizes)), " ".join(map(str, compiled.sizes.tolist())), str(len(scopes)), *scopes]
    with create_file(path) as stream:
        stream.write(("\n".join(head) + "\n\n" + "\n".join(tables)).encode("ascii"))


def read_evidence(path: str | os.PathLike[str], graph: FactorGraph | None = None) -> dict[int, int]:
    """Read the observed variables and their states from a ``.evid`` file.

    Args:
        path: Path of the file, possibly compressed. An empty file observes no variable.
        graph: Graph in which the variables and states must exist; None omits this check.

    Returns:
        The state of each observed variable.

    Raises:
        GraphFileError: The file is malformed, or does not fit the graph.
        FormatError: The file cannot be read.
    """
    tokens = _Tokens(path)
    n_words = sum(1 for _ in _WORD.finditer(tokens.text))
    if not n_words:
        return {}
    sizes = _sizes(graph)
    most = 2**31 - 1 if sizes is None else len(sizes) - 1
    # Files of the 2010 competition begin with the number of samples, 1. Only these have an even number of words.
    if n_words % 2 == 0 and tokens.block[0] == "1":
        tokens.integer("the number of samples", 1, 1)
    count = tokens.integer("the number of observed variables", 0, n_words)
    evidence: dict[int, int] = {}
    for _ in range(count):
        variable = tokens.integer("a variable", 0, most)
        if variable in evidence:
            raise tokens.error(f"variable {variable} is observed twice")
        evidence[variable] = _read_state_of(tokens, variable, None if sizes is None else sizes[variable])
    tokens.end_of_file()
    return evidence


def write_evidence(path: str | os.PathLike[str], evidence: Mapping[int, int]) -> None:
    """Write observed variables and their states to a ``.evid`` file.

    Args:
        path: Path of the file. The file is compressed if the path has an extension such as ".gz".
        evidence: The state of each observed variable.

    Raises:
        OSError: The file cannot be written.
    """
    numbers = [len(evidence), *(number for pair in evidence.items() for number in pair)]
    with create_file(path) as stream:
        stream.write((" ".join(map(str, numbers)) + "\n").encode("ascii"))


def format_marginals(marginals: Floats, sizes: Int32s) -> str:
    """Format marginals as text in the format MAR of the UAI competition.

    Args:
        marginals: float64[V, K], the probability of each state of each variable.
        sizes: int32[V], number of states of each variable; columns of ``marginals`` beyond this number are omitted.

    Returns:
        The text, which ends with a line feed.
    """
    parts = [str(len(sizes))]
    for row, size in zip(marginals.tolist(), sizes.tolist(), strict=True):
        parts += [str(size), *(f"{p:.17g}" for p in row[:size])]
    return "MAR\n" + " ".join(parts) + "\n"


def format_log_z(log_z: float) -> str:
    """Format log Z as text in the format PR of the UAI competition, which uses logarithms to base 10.

    Args:
        log_z: Natural logarithm of the partition function.

    Returns:
        The text, which ends with a line feed.
    """
    return f"PR\n{log_z / math.log(10):.17g}\n"


def format_state(state: Sequence[int]) -> str:
    """Format a joint state as text in the format MPE of the UAI competition.

    Args:
        state: int[V], the state of each variable.

    Returns:
        The text, which ends with a line feed.
    """
    return "MPE\n" + " ".join(map(str, [len(state), *state])) + "\n"


def read_marginals(path: str | os.PathLike[str], graph: FactorGraph | None = None) -> list[Floats]:
    """Read marginals from a file in the format MAR of the UAI competition.

    Args:
        path: Path of the file, possibly compressed.
        graph: Graph whose variables the file must describe; None omits this check.

    Returns:
        float64[K] for each variable, the probability of each state.

    Raises:
        GraphFileError: The file is malformed, or does not fit the graph.
        FormatError: The file cannot be read.
    """
    tokens, n_words = _result_tokens(path, "MAR")
    first = tokens.text.split(maxsplit=3)[1:3]
    # Files of the 2010 competition have the number of samples, 1, before the number of variables.
    if first[:1] == ["1"] and first[1:] != [str(n_words - 2)]:
        tokens.integer("the number of samples", 1, 1)
    sizes = _count_variables(tokens, graph)
    marginals: list[Floats] = []
    for v, size in enumerate(sizes):
        least, most = (1, tokens.most) if size is None else (size, size)
        row = tokens.numbers(tokens.integer("a number of states", least, most), "probabilities")
        if abs(row.sum() - 1) > _MARGIN:
            raise tokens.error(f"the probabilities of variable {v} must add up to 1, got {row.sum():.6g}")
        marginals.append(row)
    tokens.end_of_file()
    return marginals


def read_log_z(path: str | os.PathLike[str]) -> float:
    """Read log Z from a file in the format PR of the UAI competition, which has a logarithm to base 10.

    Args:
        path: Path of the file, possibly compressed.

    Returns:
        The natural logarithm of the partition function; -inf if it is 0.

    Raises:
        GraphFileError: The file is malformed.
        FormatError: The file cannot be read.
    """
    tokens, n_words = _result_tokens(path, "PR")
    if n_words == 2:
        tokens.integer("the number of samples", 1, 1)
    word = tokens.word("log10 of the partition function")
    value = _number(word)
    if math.isnan(value) or value == math.inf:
        raise tokens.error(f"log10 of the partition function must be a number, got {word[:40]!r}")
    tokens.end_of_file()
    return value * math.log(10)


def read_state(path: str | os.PathLike[str], graph: FactorGraph | None = None) -> list[int]:
    """Read a joint state from a file in the format MPE of the UAI competition.

    Args:
        path: Path of the file, possibly compressed.
        graph: Graph whose variables and states the file must name; None omits this check.

    Returns:
        The state of each variable.

    Raises:
        GraphFileError: The file is malformed, or does not fit the graph.
        FormatError: The file cannot be read.
    """
    tokens, n_words = _result_tokens(path, "MPE")
    if tokens.text.split(maxsplit=2)[1:2] == ["1"] and n_words != 2:
        tokens.integer("the number of samples", 1, 1)
    state = [_read_state_of(tokens, v, size) for v, size in enumerate(_count_variables(tokens, graph))]
    tokens.end_of_file()
    return state


def read_samples(path: str | os.PathLike[str], graph: FactorGraph | None = None) -> Int32s:
    """Read joint states, one per line, as ``herdner infer --task samples`` writes them.

    Args:
        path: Path of the file, possibly compressed.
        graph: Graph whose variables and states the file must name; None omits this check.

    Returns:
        int32[N, V], the joint states.

    Raises:
        GraphFileError: The file is malformed, or does not fit the graph.
        FormatError: The file cannot be read.
    """
    tokens = _Tokens(path)
    numbered = list(enumerate(tokens.text.splitlines(), 1))
    numbered = [(number, line) for number, line in numbered if line.strip()] or numbered  # or no variables
    sizes = _sizes(graph)
    n = len(sizes) if sizes is not None else len(numbered[0][1].split()) if numbered else 0
    for number, line in numbered:
        if len(line.split()) != n:
            raise GraphFileError(f"{path}:{number}: a joint state must have {n} numbers, got {len(line.split())}")
    known: Sequence[int | None] = [None] * n if sizes is None else sizes
    states = [[_read_state_of(tokens, v, size) for v, size in enumerate(known)] for _ in numbered]
    return np.array(states, np.int32).reshape(len(numbered), n)


def _result_tokens(path: str | os.PathLike[str], task: str) -> tuple[_Tokens, int]:
    """Return the tokens that follow the name of the task in a result file, and the number of these tokens."""
    tokens = _Tokens(path)
    word = tokens.word(task)
    if word.upper() != task:
        raise tokens.error(f"the file must begin with {task}, got {word[:40]!r}")
    return tokens, sum(1 for _ in _WORD.finditer(tokens.text)) - 1


def _sizes(graph: FactorGraph | None) -> list[int] | None:
    """Return the numbers of states of a graph's variables, or None without a graph."""
    return None if graph is None else compile_tables(graph).sizes.tolist()


def _count_variables(tokens: _Tokens, graph: FactorGraph | None) -> Sequence[int | None]:
    """Read the number of variables; return the number of states of each, which is None without a graph."""
    sizes = _sizes(graph)
    if sizes is None:
        return [None] * tokens.integer("the number of variables", 0, tokens.most)
    tokens.integer("the number of variables", len(sizes), len(sizes))
    return sizes


def _read_state_of(tokens: _Tokens, variable: int, size: int | None) -> int:
    """Read the state of a variable that has ``size`` states, or any number of states if ``size`` is None."""
    return tokens.integer(f"the state of variable {variable}", 0, 2**31 - 1 if size is None else size - 1)
