from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

class Replicas:
    n_variables: int
    n_replicas: int
    n_blocks: int
    best_log_potential: float
    states: NDArray[np.int32]
    def __new__(
        cls,
        sizes: ArrayLike,
        scopes: Sequence[Sequence[int]],
        tables: Sequence[NDArray[np.float64]],
        blocks: Sequence[ArrayLike],
        betas: ArrayLike,
        penalties: ArrayLike,
        key: int,
    ) -> Replicas: ...
    @property
    def best(self) -> NDArray[np.int32]: ...
    @property
    def energies(self) -> NDArray[np.float64]: ...
    @property
    def rejection_rates(self) -> NDArray[np.float64]: ...
    @property
    def marginal_sums(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]: ...
    def set_temperatures(self, betas: ArrayLike, penalties: ArrayLike) -> None: ...
    def draw_uniform(self, r: int) -> None: ...
    def advance(self, n_rounds: int, record: bool = False, update: bool = True) -> int: ...
    def anneal(self, r: int, betas: ArrayLike, penalties: ArrayLike, reverse: bool = False) -> float: ...
