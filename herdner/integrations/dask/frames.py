"""Lazy tagging of Dask bags and data frames."""

# Dask's collections, pandas and pyarrow are not typed.
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


def tag_bag(
    bag: db.Bag,
    *,
    model: str | os.PathLike[str] = "en",
    column: str = "text",
    inference: Inference | None = None,
    seed: int = 0,
    **options: Any,
) -> db.Bag:
    """Tag the texts of a Dask bag lazily.

    >>> import dask.bag
    >>> from herdner.integrations.dask import tag_bag
    >>> bag = tag_bag(dask.bag.from_sequence(["Ada Lovelace met Charles Babbage in London."]))
    >>> [entity["text"] for entity in bag.compute(scheduler="sync")[0]["entities"]]
    ['Ada Lovelace', 'Charles Babbage', 'London']

    Args:
        bag: Texts, or records with a text in ``column``.
        model: Name of a shipped model, or a file, which is read by this call and sent once to each worker.
        column: Key of the text in a record.
        inference: Options of tagging. None builds them from ``options``.
        seed: Seed of the random numbers. The random numbers of a document depend only on the seed and its text, so that
            results do not depend on the partitions.
        options: Keyword arguments of `herdner.ner.inference.Inference.of`, such as ``backend``.

    Returns:
        Records with the key "entities": a list of ``{"start", "end", "label", "text", "confidence"}``. A text becomes a
        record. A record that cannot be tagged has "entities" None and the reason in "error".

    Raises:
        ModelError: The model does not exist or is invalid.
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
    """Tag the texts in a column of a Dask data frame lazily.

    >>> import dask.dataframe, pandas
    >>> from herdner.integrations.dask import tag_frame
    >>> texts = pandas.DataFrame({"text": ["Ada Lovelace met Charles Babbage in London."]})
    >>> frame = tag_frame(dask.dataframe.from_pandas(texts, npartitions=1))
    >>> [entity["label"] for entity in frame.compute(scheduler="sync")["entities"][0]]
    ['PER', 'PER', 'LOC']

    Args:
        frame: The data frame.
        column: Column of the texts.
        into: Name of the new column.
        model: As for `tag_bag`.
        inference: As for `tag_bag`.
        seed: As for `tag_bag`.
        options: As for `tag_bag`.

    Returns:
        The data frame with a new column of Arrow's type list of structs (start, end, label, text, confidence). It is
        null where the text is null, and where tagging fails, which is logged as a warning.

    Raises:
        ValueError: There is no such column.
        ModelError: The model does not exist or is invalid.
    """
    if column not in frame.columns:
        raise ValueError(f"no column {column!r}; the frame has {', '.join(map(str, frame.columns))}")
    meta = make_meta(frame).assign(**{into: pd.Series([], dtype=pd.ArrowDtype(ENTITIES))})
    model_node = delayed(model_bytes(model), traverse=False)
    arguments = (model_node, column, into, inference or Inference.of(**options), seed)
    return frame.map_partitions(_tag_pandas, *arguments, meta=meta)


def _tag_records(
    records: Iterable[str | Mapping[str, Any]], model: ModelBytes, column: str, inference: Inference, seed: int
) -> list[dict[str, Any]]:
    tagger, tagged = tagger_of(model), list[dict[str, Any]]()
    for each in records:
        record = {column: each} if isinstance(each, str) else dict(each)
        result = _tag(tagger, inference, seed, record.get(column))
        if isinstance(result, Failure):
            tagged.append({**record, "entities": None, "error": result.message})
        else:
            tagged.append({**record, "entities": _entity_records(result)})
    return tagged


def _tag_pandas(
    frame: pd.DataFrame, model: ModelBytes, column: str, into: str, inference: Inference, seed: int
) -> pd.DataFrame:
    tagger = tagger_of(model)
    rows: list[list[dict[str, Any]] | None] = []
    for text in frame[column]:
        result = None if not isinstance(text, str) and pd.isna(text) else _tag(tagger, inference, seed, text)
        if isinstance(result, Failure):
            logger.warning("%s", result.message)
        rows.append(_entity_records(result) if isinstance(result, Document) else None)
    values = pd.Series(pd.arrays.ArrowExtensionArray(pa.array(rows, ENTITIES)), index=frame.index)
    return frame.assign(**{into: values})


def _entity_records(document: Document) -> list[dict[str, Any]]:
    return [entity_record(entity) for entity in document.entities]


def _tag(tagger: Tagger, inference: Inference, seed: int, text: object) -> Document | Failure:
    if not isinstance(text, str):
        return Failure(ValueError(f"a text must be a string, got {text!r:.40}"))
    index = int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return next(tagger.outcomes([Document.from_text(text)], inference, seed=seed, first=index))
