from herdner._ext.arrays import Floats, Int32s, Int64s

LayoutArrays = tuple[Int32s, Int64s, Int32s, Int64s]

def bundle(
    uses: Int32s, starts: Int64s, values: Floats | None, n_dense: int, n_features: int
) -> tuple[LayoutArrays, LayoutArrays, Floats | None]: ...
