from collections.abc import Sequence

from herdner._ext.arrays import Bools, Floats, Int32s, Int64s

def add_borders(unary: Floats, offsets: Int64s, start: Floats, end: Floats) -> None: ...
def viterbi(
    unary: Floats, tables: Floats, offsets: Int64s, edge_table: Int32s | None, states: Int32s, scores: Floats
) -> int: ...
def forward_backward(
    unary: Floats,
    tables: Floats,
    offsets: Int64s,
    edge_table: Int32s | None,
    log_z: Floats,
    nodes: Floats | None = None,
    counts: Floats | None = None,
    edges: Floats | None = None,
) -> int: ...
def span_log_probability(
    unary: Floats,
    tables: Floats,
    offsets: Int64s,
    edge_table: Int32s | None,
    states: Int32s,
    span_starts: Int64s,
    span_ends: Int64s,
    out: Floats,
) -> int: ...
def linked_span_log_probability(
    unary: Floats,
    total: Floats,
    tables: Floats,
    offsets: Int64s,
    states: Int32s,
    span_starts: Int64s,
    span_ends: Int64s,
    links: Sequence[Int32s],
    link_tables: list[Floats],
    beliefs: Floats,
    start: Floats | None,
    end: Floats | None,
) -> tuple[int, Bools, Floats]: ...
