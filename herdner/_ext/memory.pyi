from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)

class Memory:
    def __init__(self) -> None: ...

def sealed(values: list[NDArray[T]]) -> NDArray[T]: ...
def is_sealed(array: object) -> TypeGuard[NDArray[Any]]: ...
