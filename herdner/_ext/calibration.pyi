from collections.abc import Sequence

from herdner._ext.arrays import Bools, Floats, Int64s

def regressors(
    confidence: Floats, without_links: Floats, length: Int64s, document: Int64s, nearest: float, longest: int
) -> Floats: ...
def calibrated(
    confidence: Floats,
    without_links: Floats,
    is_linked: Bools,
    length: Int64s,
    document: Int64s,
    label_constants: Floats,
    linked: Sequence[float],
    unlinked: Sequence[float],
    length_weight: float,
    document_weight: float,
    nearest: float,
    longest: int,
) -> Floats: ...
