from herdner.base.arrays import Floats, Int32s, Int64s

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
