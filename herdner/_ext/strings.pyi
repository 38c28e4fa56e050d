from collections.abc import Mapping
from typing import Any

class Strings:
    @property
    def values(self) -> Mapping[str, Any]: ...
    def add(self, word: str, value: object) -> None: ...
