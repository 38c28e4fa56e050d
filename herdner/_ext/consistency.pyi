from numpy.typing import ArrayLike

from herdner._ext.arrays import Uint8s

def possible_states(
    sizes: ArrayLike, scope_at: ArrayLike, scopes: ArrayLike, table_at: ArrayLike, tables: ArrayLike
) -> tuple[Uint8s, int]: ...
