"""Label Studio's JSON: tasks with the annotations of people and the predictions of models.

The format: https://labelstud.io/guide/task_format; predictions to import: https://labelstud.io/guide/predictions;
JSON_MIN, the flat export: https://labelstud.io/guide/export.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from herdner.text.document import Document, Failure
from herdner.text.entity import Entity
from herdner.text.io.marked import Doubt, Mark, annotated, failing, listed
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import FormatError, Source, read_chunks, sources
from herdner.text.io.write import json_line, utf8
from herdner.text.plain_data import describe_json_error

_KINDS = ("labels", "hypertextlabels")


def read_label_studio(
    where: str | Path | IO[Any] | Source,
    *,
    encoding: str = "utf-8",
    strict: bool = False,
) -> Iterator[Document | Failure]:
    """The tasks of exports (JSON or JSON_MIN) and of files to import; a file is one list, and is held in memory.

    The text is ``data["text"]``, or the only string in ``data``; the rest of ``data`` becomes `Document.fields`, its
    "id" or else the task's the id. Of several annotations of a task that one counts which is the ground truth, else the
    last that was not cancelled; one without a result says that there is no name. A task without annotation has no
    tags; the last prediction, if there is one, becomes its entities. Regions of other kinds are left out. Offsets count
    characters, or UTF-16 units where only these fit the text of a region. A task that is wrong is a
    `Failure`, and the next follows. Raises FormatError.
    """
    for source in sources(where, ("*.json",)):
        with ParseWarnings(source.name, strict) as doubts:
            for number, task in enumerate(_tasks(source, encoding), 1):
                with failing(f"{source.name}: task {number}") as failed:
                    yield _document(task, f"{source.id}#{number}", partial(doubts.add, document=number))
                yield from failed


def _tasks(source: Source, encoding: str) -> list[Any]:
    text = "".join(read_chunks(source, encoding))
    if not text.strip():
        raise FormatError(f"{source.name}: is empty; expected a list of Label Studio's tasks")
    try:
        tasks: object = json.loads(text)
    except RecursionError:
        raise FormatError(f"{source.name}: nested too deeply for Label Studio's JSON") from None
    except ValueError as error:
        raise FormatError(
            f"{source.name}: {describe_json_error(error)}; expected Label Studio's export, JSON or JSON_MIN"
        ) from None
    if isinstance(tasks, dict):
        return [cast(object, tasks)]
    if not isinstance(tasks, list):
        raise FormatError(f"{source.name}: a JSON {type(tasks).__name__}; expected a list of Label Studio's tasks")
    return cast("list[Any]", tasks)


def _document(task: object, id: str, doubt: Doubt) -> Document:
    if not isinstance(task, dict):
        raise ValueError(f"is {json.dumps(task)[:40]}; expected an object with data and annotations")
    values = cast("dict[str, Any]", task)
    if not isinstance(values.get("data"), dict):
        return _flat(values, id, doubt)
    data = dict(cast("dict[str, Any]", values["data"]))
    text = data.pop(_text_key(data))
    own = next((name for name in (data.pop("id", None), values.get("id")) if name is not None), id)
    document = Document.from_text(text, id=str(own), fields=data)
    results = _annotations(values, doubt)
    if results is not None:
        return annotated(document, _marks(results, doubt), doubt)
    guesses = listed(values.get("predictions") or [], "predictions")
    result = _result(guesses[-1]) if guesses else []
    return annotated(document, _marks(result, doubt), doubt, annotated=False)


def _flat(values: dict[str, Any], id: str, doubt: Doubt) -> Document:
    """A task of JSON_MIN: its regions are a list under the name of the control, as in "label"."""
    fields = dict(values)
    text = fields.pop(_text_key(fields))
    name = fields.pop("id", id)
    marks: list[Mark] = []
    found = False
    for key, value in values.items():
        if isinstance(value, list) and (not value or (isinstance(value[0], dict) and "labels" in value[0])):
            fields.pop(key, None)
            found = True
            marks += _marks([{"type": "labels", "value": each} for each in cast("list[Any]", value)], doubt)
    known = found or "annotation_id" in values
    return annotated(Document.from_text(text, id=str(name), fields=fields), marks, doubt, annotated=known)


def _text_key(data: Mapping[str, Any]) -> str:
    if isinstance(data.get("text"), str):
        return "text"
    strings = [
        key for key, value in data.items() if isinstance(value, str) and key not in ("id", "created_at", "updated_at")
    ]
    if len(strings) != 1:
        raise ValueError(f"no text in its data ({', '.join(data) or 'none'}); expected a string named text")
    return strings[0]


def _annotations(values: Mapping[str, Any], doubt: Doubt) -> list[Any] | None:
    """The result that counts; None where nobody has annotated the task."""
    given = [_object(each) for each in listed(values.get("annotations") or [], "annotations")]
    done = [each for each in given if not each.get("was_cancelled")]
    if len(done) > 1:
        doubt("of several annotations the ground truth counts, else the last")
    right = [each for each in done if each.get("ground_truth")] or done
    return _result(right[-1]) if right else None


def _object(given: object) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"an annotation is {json.dumps(given)[:40]}; expected an object with a result")
    return cast("dict[str, Any]", given)


def _result(given: object) -> list[Any]:
    return listed(_object(given).get("result") or [], "results")


def _marks(results: Iterable[Any], doubt: Doubt) -> Iterator[Mark]:
    for each in map(_object, results):
        value = each.get("value")
        if each.get("type") not in _KINDS or not isinstance(value, dict):
            doubt("a region that is no label of a text is left out")
            continue
        region = cast("dict[str, Any]", value)
        names = listed(region.get(str(each["type"]), region.get("labels")) or [], "labels")
        if not names:
            doubt("a region without a label is left out")
            continue
        if len(names) > 1:
            doubt("of several labels of a region the first counts")
        if isinstance(region.get("start"), str):
            raise ValueError(
                "its regions are places in HTML (XPath); expected a Text control, whose offsets are numbers"
            )
        sure = each.get("score", region.get("score"))
        yield Mark(region.get("start"), region.get("end"), names[0], region.get("text"), sure)


def write_label_studio(
    documents: Iterable[Document],
    stream: IO[Any],
    *,
    annotations: bool = False,
    from_name: str = "label",
    to_name: str = "text",
    model: str = "herdner",
) -> None:
    """A list of tasks to import, each with the entities as a prediction, or, with ``annotations`` where the document is
    annotated, as an annotation that counts as done.

    ``from_name`` and ``to_name`` are the names of the Labels and Text controls of the project; the text is
    ``data["text"]``, beside "id" and the fields of the document. The score of a prediction is the confidence of its
    least sure entity: Label Studio can sort tasks by it.
    """
    put, before = utf8(stream), "[\n"
    for document in documents:
        names = {"from_name": from_name, "to_name": to_name, "type": "labels"}
        result = [{"id": str(i), **names, **_region(entity)} for i, entity in enumerate(document.entities)]
        data = {**document.fields, "text": document.text} | ({} if document.id is None else {"id": document.id})
        record: dict[str, Any] = {"data": data}
        if annotations and document.tags is not None:
            record["annotations"] = [{"result": result}]
        elif document.tags is not None or result:
            sure = [entity.confidence for entity in document.entities if entity.confidence is not None]
            record["predictions"] = [
                {"model_version": model, **({"score": round(min(sure), 6)} if sure else {}), "result": result}
            ]
        put(before + json_line(record).rstrip("\n"))
        before = ",\n"
    put(("[" if before == "[\n" else "\n") + "]\n")


def _region(entity: Entity) -> dict[str, Any]:
    value = {"start": entity.start, "end": entity.end, "text": entity.text, "labels": [entity.label]}
    score = {} if entity.confidence is None else {"score": round(float(entity.confidence), 6)}
    return {"value": value, **score}
