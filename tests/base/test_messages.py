"""Parts of messages, and the line to which a warning points."""

from __future__ import annotations

import warnings

import pytest

from herdner.base.messages import format_size, warn_caller


@pytest.mark.parametrize(
    ("n_bytes", "text"), [(0, "0.0 kB"), (4321, "4.3 kB"), (10_234_567, "10.2 MB"), (3.4e9, "3.4 GB")]
)
def test_sizes(n_bytes: float, text: str) -> None:
    assert format_size(n_bytes) == text


def test_a_warning_points_to_the_first_line_outside_the_package() -> None:
    calls = {"__name__": "herdner.fictitious", "warn_caller": warn_caller}
    exec("def inner():\n    warn_caller('careful', RuntimeWarning)\n\ndef outer():\n    inner()\n", calls)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calls["outer"]()
    assert [(each.filename, str(each.message), each.category) for each in caught] == [
        (__file__, "careful", RuntimeWarning)
    ]
