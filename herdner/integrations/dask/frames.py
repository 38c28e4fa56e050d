"""Dask collections: a lazy call on a bag or a data frame."""

# Dask's collections, pandas and pyarrow have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import dask.bag as db
import dask.dataframe as dd
import pandas as pd
import pyarrow as pa
from dask.dataframe.dispatch import make_meta
from dask.delayed import delayed

from herdner.integrations.dask.worker import ModelBytes, model_bytes, tagger_of
from herdner.ner.inference import Inference
from herdner.ner.tagger import Tagger
from herdner.text.document import Document, Failure
from herdner.text.io.parquet import ENTITIES
from herdner.text.io.write import entity_record

logger = logging.getLogger(__name__)

Record = Mapping[str, Any]


def tag_bag(
    bag: db.Bag,
    *,
    model: str | os.PathLike[str] = "en",
    column: str = "text",
    inference: Inference | None = None,
    seed: int = 0,
    **options: Any,
) -> db.Bag:
    """The bag's texts, or records with a text in ``column``, as records with ``entities``; lazily.

    >>> import dask.bag
    >>> from herdner.integrations.dask import tag_bag
    >>> bag = tag_bag(dask.bag.from_sequence(["Ada Lovelace met Charles Babbage in London."]))
    >>> [entity["text"] for entity in bag.compute(scheduler="sync")[0]["entities"]]
    ['Ada Lovelace', 'Charles Babbage', 'London']

    A record keeps what it holds and gets ``entities``, a list of ``{"start", "end", "label", "text", "confidence"}``;
    a text becomes a record. One that cannot be tagged has ``entities`` None and the reason in ``error``. The model's
    file is read now, here, and goes once to each worker. The random numbers of a document follow from ``seed`` and
    its text alone, so that partitions do not matter. ``backend`` and ``options`` are those of `Tagger.pipe`. Raises
    `ModelError`.
    """
    model_node = delayed(model_bytes(model), traverse=False)
    return bag.map_partitions(_tag_records, model_node, column, inference or Inference.of(**options), seed)


def tag_frame(
    frame: dd.DataFrame,
    *,
    column: str = "text",
    into: str = "entities",
    model: str | os.PathLike[str] = "en",
    inference: Inference | None = None,
    seed: int = 0,
    **options: Any,
) -> dd.DataFrame:
    """The data frame with the names of the texts in ``column`` as a new column ``into``; lazily.

    >>> import dask.dataframe, pandas
    >>> from herdner.integrations.dask import tag_frame
    >>> texts = pandas.DataFrame({"text": ["Ada Lovelace met Charles Babbage in London."]})
    >>> frame = tag_frame(dask.dataframe.from_pandas(texts, npartitions=1))
    >>> [entity["label"] for entity in frame.compute(scheduler="sync")["entities"][0]]
    ['PER', 'PER', 'LOC']

    The new column is Arrow's list of structs (start, end, label, text, confidence), as ``to_parquet`` writes it. It is
    null where the text is, and where it cannot be tagged, which is logged as a warning. Model, ``seed``, ``backend``
    and ``options`` are as in `tag_bag`.

    Raises:
        ValueError: There is no such column.
        ModelError: There is no such model.
    """
    if column not in frame.columns:
        raise ValueError(f"no column {column!r}; the frame has {', '.join(map(str, frame.columns))}")
    meta = make_meta(frame).assign(**{into: pd.Series([], dtype=pd.ArrowDtype(ENTITIES))})
    model_node = delayed(model_bytes(model), traverse=False)
    arguments = (model_node, column, into, inference or Inference.of(**options), seed)
    return frame.map_partitions(_tag_pandas, *arguments, meta=meta)


def _tag_records(
    records: Iterable[str | Record], model: ModelBytes, column: str, inference: Inference, seed: int
) -> list[dict[str, Any]]:
    tagger, tagged = tagger_of(model), list[dict[str, Any]]()
    for record in records:
        filled: Record = {column: record} if isinstance(record, str) else record
        result = _tagged(tagger, inference, seed, filled.get(column))
        if isinstance(result, Failure):
            tagged.append({**filled, "entities": None, "error": result.message})
        else:
            tagged.append({**filled, "entities": _records(result)})
    return tagged


def _tag_pandas(
    frame: pd.DataFrame, model: ModelBytes, column: str, into: str, inference: Inference, seed: int
) -> pd.DataFrame:
    tagger = tagger_of(model)
    found: list[list[dict[str, Any]] | None] = []
    for text in frame[column]:
        result = None if not isinstance(text, str) and pd.isna(text) else _tagged(tagger, inference, seed, text)
        if isinstance(result, Failure):
            logger.warning("%s", result.message)
        found.append(_records(result) if isinstance(result, Document) else None)
    values = pd.Series(pd.arrays.ArrowExtensionArray(pa.array(found, ENTITIES)), index=frame.index)
    return frame.assign(**{into: values})


def _records(document: Document) -> list[dict[str, Any]]:
    return [entity_record(entity) for entity in document.entities]


def _tagged(tagger: Tagger, inference: Inference, seed: int, text: object) -> Document | Failure:
    if not isinstance(text, str):
        return Failure(ValueError(f"{text!r:.40} is no text; expected a string"))
    number = int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return next(tagger.outcomes([Document.from_text(text)], inference, seed=seed, first=number))
