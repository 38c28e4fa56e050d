"""Label Studio's JSON: tasks with annotations by people and predictions by models.

Format: https://labelstud.io/guide/task_format; predictions to import: https://labelstud.io/guide/predictions; JSON_MIN,
the flat export: https://labelstud.io/guide/export.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import IO, Any, cast

from herdner.base.memory import check_memory
from herdner.text.document import Document, Failure
from herdner.text.entity import Entity, join_pairs
from herdner.text.io.annotation_tools import MarkedSpan, check_list, with_marked_spans
from herdner.text.io.jsonl import Warn, as_failure
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import FormatError, Input, Source, read_whole, sources
from herdner.text.io.write import json_line, utf8, with_fields
from herdner.text.plain_data import describe_json_error, finite_number

_TYPES = ("labels", "hypertextlabels")
_PARSED_BYTES = 24  # largest memory of parsed JSON for each character: an empty list takes 72 bytes for three of them
SAME_NAME = "same name"  # label of the relation between two mentions of a name


def read_label_studio(where: Input, *, encoding: str = "utf-8", strict: bool = False) -> Iterator[Document | Failure]:
    """Read documents from Label Studio files: exports (JSON or JSON_MIN) and tasks for import.

    The text is ``data["text"]`` or the only string in ``data``; the rest of ``data`` becomes `Document.fields`. The id
    is ``data["id"]`` or the id of the task. If a task has several annotations, the ground truth is read, or the last
    annotation that was not cancelled; an empty result means that there is no name. In a task without annotation the
    last prediction is read as a proposal. Regions that do not label text are omitted. Offsets count characters, or
    UTF-16 units if only these match the text of a region.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`). A file is one list and is held in memory.
        encoding: Encoding of the files.
        strict: Raise an error instead of logging a warning.

    Yields:
        Documents, and a `Failure` for each invalid task.

    Raises:
        FormatError: A file cannot be read, is too large or is not a list of tasks.
        NotEnoughMemory: A file does not fit into memory.
    """
    for source in sources(where, ("*.json",)):
        with ParseWarnings(source.name, strict) as warnings:
            for number, task in enumerate(_tasks(source, encoding), 1):
                try:
                    yield _document(task, source.document_id(number), partial(warnings.add, document=number))
                except (ValueError, RecursionError) as error:
                    yield as_failure(error, f"{source.name}: task {number}")


def _tasks(source: Source, encoding: str) -> list[Any]:
    text = read_whole(source, encoding)
    check_memory(_PARSED_BYTES * len(text), f"{source.name}: reading the export", "export fewer tasks at a time")
    if not text.strip():
        raise FormatError(f"{source.name}: the file is empty; expected a list of Label Studio's tasks")
    try:
        tasks: object = json.loads(text, parse_float=finite_number)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{source.name}: {describe_json_error(error)}; expected Label Studio's export, JSON or JSON_MIN"
        ) from None
    if isinstance(tasks, dict):
        return [cast(object, tasks)]
    if not isinstance(tasks, list):
        raise FormatError(f"{source.name}: got a JSON {type(tasks).__name__}; expected a list of Label Studio's tasks")
    return cast("list[Any]", tasks)


def _document(task: object, id: str, warn: Warn) -> Document:
    if not isinstance(task, dict):
        raise ValueError(f"the task is {json.dumps(task)[:40]}; expected an object with `data` and `annotations`")
    values = cast("dict[str, Any]", task)
    if not isinstance(values.get("data"), dict):
        return _flat(values, id, warn)
    data = dict(cast("dict[str, Any]", values["data"]))
    text = data.pop(_text_key(data))
    own = next((name for name in (data.pop("id", None), values.get("id")) if name is not None), id)
    document = Document.from_text(text, id=str(own), fields=data)
    results = _annotation(values, warn)
    if results is not None:
        return with_marked_spans(document, _spans(results, warn), warn)
    predictions = check_list(values.get("predictions") or [], "predictions")
    if len(predictions) > 1:
        warn("of several predictions of a task only the last one is read")
    results = _results(predictions[-1]) if predictions else []
    return with_marked_spans(document, _spans(results, warn), warn, is_proposal=True)


def _flat(values: dict[str, Any], id: str, warn: Warn) -> Document:
    """Convert a task in Label Studio's JSON_MIN format to a document.

    The regions of the task are listed under the name of the labelling control, such as "label".
    """
    fields = dict(values)
    text = fields.pop(_text_key(fields))
    id = str(fields.pop("id", id))
    spans: list[MarkedSpan] = []
    is_annotated = "annotation_id" in values
    for key, value in values.items():
        if isinstance(value, list) and (not value or (isinstance(value[0], dict) and "labels" in value[0])):
            fields.pop(key, None)
            is_annotated = True
            spans += _spans([{"type": "labels", "value": each} for each in cast("list[Any]", value)], warn)
    document = Document.from_text(text, id=id, fields=fields)
    return with_marked_spans(document, spans, warn, is_proposal=not is_annotated)


def _text_key(data: Mapping[str, Any]) -> str:
    if isinstance(data.get("text"), str):
        return "text"
    strings = [
        key for key, value in data.items() if isinstance(value, str) and key not in ("id", "created_at", "updated_at")
    ]
    if len(strings) != 1:
        raise ValueError(f"no text in the data of the task ({', '.join(data) or 'none'}); expected a string as `text`")
    return strings[0]


def _annotation(values: Mapping[str, Any], warn: Warn) -> list[Any] | None:
    """Return the regions of a task's annotation; return None if the task is not annotated.

    If a task has several annotations, the ground truth is read, or else the last annotation.
    """
    annotations = [_object(each) for each in check_list(values.get("annotations") or [], "annotations")]
    finished = [each for each in annotations if not each.get("was_cancelled")]
    if len(finished) > 1:
        warn("of several annotations of a task only the ground truth is read, or else the last one")
    best = [each for each in finished if each.get("ground_truth")] or finished
    return _results(best[-1]) if best else None


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"an annotation is {json.dumps(value)[:40]}; expected an object with the key `result`")
    return cast("dict[str, Any]", value)


def _results(annotation: object) -> list[Any]:
    return check_list(_object(annotation).get("result") or [], "results")


def _spans(results: Sequence[Any], warn: Warn) -> Iterator[MarkedSpan]:
    relations = [result for result in map(_object, results) if _is_same_name(result)]
    names = join_pairs((str(each.get("from_id")), str(each.get("to_id"))) for each in relations)
    for result in map(_object, results):
        if _is_same_name(result):
            continue
        value = result.get("value")
        if result.get("type") not in _TYPES or not isinstance(value, dict):
            warn("a region that does not label text is left out")
            continue
        region = cast("dict[str, Any]", value)
        labels = check_list(region.get(str(result["type"]), region.get("labels")) or [], "labels")
        if not labels:
            warn("a region without a label is left out")
            continue
        if len(labels) > 1:
            warn("of several labels of a region the first is read")
        if isinstance(region.get("start"), str):
            raise ValueError(
                "the regions of the task have positions in HTML (XPath); expected numeric positions, as a Text control"
                " exports"
            )
        confidence = result.get("score", region.get("score"))
        name = names.get(str(result.get("id")))
        yield MarkedSpan(region.get("start"), region.get("end"), labels[0], region.get("text"), confidence, name)


def _is_same_name(result: Mapping[str, Any]) -> bool:
    return result.get("type") == "relation" and result.get("labels") == [SAME_NAME]


def write_label_studio(
    documents: Iterable[Document],
    stream: IO[Any],
    *,
    annotations: bool = False,
    from_name: str = "label",
    to_name: str = "text",
    model: str = "herdner",
) -> None:
    """Write a JSON list of Label Studio tasks for import. The entities become predictions or annotations of the tasks.

    The text is ``data["text"]``, beside "id" and the fields of the document. The score of a prediction is the lowest
    confidence of its entities; Label Studio can sort tasks by it. Each mention of a name has a relation with the label
    "same name" to the next mention.

    Args:
        documents: The documents.
        stream: A text or binary stream.
        annotations: Write the entities of annotated documents as finished annotations instead of predictions.
        from_name: Name of the project's Labels control.
        to_name: Name of the project's Text control.
        model: Name of the model that made the predictions.
    """
    put, before = utf8(stream), "[\n"
    for document in documents:
        names = {"from_name": from_name, "to_name": to_name, "type": "labels"}
        result = [{"id": str(i), **names, **_region(entity)} for i, entity in enumerate(document.entities)]
        result += [
            {"type": "relation", "from_id": str(i), "to_id": str(j), "direction": "bi", "labels": [SAME_NAME]}
            for name in document.names
            for i, j in pairwise(name.mentions)
        ]
        own = {"text": document.text} | ({} if document.id is None else {"id": document.id})
        data = with_fields(own, document)
        record: dict[str, Any] = {"data": data}
        if annotations and document.is_annotated:
            record["annotations"] = [{"result": result}]
        elif document.spans is not None:
            confidences = [entity.confidence for entity in document.entities if entity.confidence is not None]
            score = {"score": round(min(confidences), 6)} if confidences else {}
            record["predictions"] = [{"model_version": model, **score, "result": result}]
        put(before + json_line(record).rstrip("\n"))
        before = ",\n"
    put(("[" if before == "[\n" else "\n") + "]\n")


def _region(entity: Entity) -> dict[str, Any]:
    value = {"start": entity.start, "end": entity.end, "text": entity.text, "labels": [entity.label]}
    score = {} if entity.confidence is None else {"score": round(float(entity.confidence), 6)}
    return {"value": value, **score}
