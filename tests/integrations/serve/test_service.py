"""The JSON service: what it answers, and what it says to requests that it does not carry out."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from data import REPOSITORY

import herdner
from herdner import Tagger

pytest.importorskip("fastapi", reason="needs FastAPI: pip install '.[serve]'")

from herdner.integrations.serve import Limits, create_app
from herdner.integrations.serve.middleware import HEADERS
from herdner.integrations.serve.pool import PoolBusy, RequestTimeout, WorkerFault
from herdner.integrations.serve.schema import OPTIONS, ExplainResponse, ServiceInfo, TagRequest, TagResponse
from herdner.integrations.serve.worker import RequestHandler

ARTICLE = (REPOSITORY / "corpora" / "article.txt").read_text(encoding="utf-8")
PAGES = [
    "/",
    "/docs",
    "/names.css",
    "/style.css",
    "/app.js",
    "/curve.js",
    "/view.js",
    "/links.js",
    "/make.js",
    "/why.js",
]
PAGES += ["/docs.js", "/icon.svg"]


def tag(client: Any, **request: Any) -> TagResponse:
    response = client.post("/api/tag", json=request)
    assert response.status_code == 200, response.text
    return TagResponse.model_validate_json(response.content)


def refused(response: Any, status: int) -> str:
    """The one line of a refusal, which comes with all headers and tells nothing of the inside."""
    assert response.status_code == status, response.text
    assert list(response.json()) == ["detail"]
    assert {name: response.headers[name] for name in HEADERS} == HEADERS
    detail = response.json()["detail"]
    assert "\n" not in detail
    assert "Traceback" not in detail
    assert ".py" not in detail
    return detail


def as_tuples(entities: Any) -> list[tuple]:
    return [(e.start, e.end, e.label, e.text, e.confidence) for e in entities]


# --- what it answers


@pytest.mark.parametrize(
    ("choice", "options"),
    [
        ({}, {}),
        ({"backend": "viterbi", "links": False}, {"backend": "viterbi", "links": False}),
        ({"backend": "gibbs", "options": {"n_sweeps": 30}}, {"backend": "gibbs", "n_sweeps": 30}),
        (
            {"backend": "dhg", "options": {"n_sweeps": 20, "n_bins": 4, "scan": "checkerboard"}},
            {"backend": "dhg", "n_sweeps": 20, "n_bins": 4, "scan": "checkerboard"},
        ),
    ],
)
def test_entities_are_those_of_the_tagger(client: Any, tagger: Tagger, choice: dict, options: dict) -> None:
    answer = tag(client, text=ARTICLE, backends=[choice], seed=5)
    expected = tagger.tag(ARTICLE, seed=5, **options)
    assert as_tuples(answer.results[0].entities) == as_tuples(expected.entities)
    assert len(expected.entities) > 20
    assert (answer.n_characters, answer.n_tokens) == (len(ARTICLE), expected.n_tokens)
    assert answer.n_sentences == expected.n_sentences
    assert answer.model == "en"


def test_backends_side_by_side_are_each_as_if_alone(client: Any) -> None:
    choices = [{"backend": "icm"}, {"backend": "rdhg", "options": {"n_sweeps": 10}}, {"links": False}]
    together = tag(client, text=ARTICLE, backends=choices, seed=2).results
    alone = [tag(client, text=ARTICLE, backends=[choice], seed=2).results[0] for choice in choices]
    for one, other in zip(together, alone, strict=True):
        assert one.model_copy(update={"seconds": 0}) == other.model_copy(update={"seconds": 0})
    assert [result.backend for result in together] == ["icm", "rdhg", None]
    assert together[1].options.model_dump(exclude_none=True) == {"n_sweeps": 10}
    assert tag(client, text=ARTICLE, backends=["icm"], seed=2).results[0].entities == together[0].entities


def test_links_are_the_links_with_what_they_add(client: Any, tagger: Tagger) -> None:
    (result,) = tag(client, text=ARTICLE).results
    document = tagger.tag(ARTICLE)
    states = [tagger.classes_.index(label) for label in document.tags or ()]
    expected = []
    for each in tagger.model_.link_tables:
        name = each.template.name
        for a, b in tagger.find_links(ARTICLE)[name].tolist():
            spans = [(int(document.token_starts[token]), int(document.token_ends[token])) for token in (a, b)]
            expected.append((name, *spans, pytest.approx(each.table[states[a], states[b]], abs=1e-4)))
    found = [
        (x.rule, (x.earlier.start, x.earlier.end), (x.later.start, x.later.end), x.log_potential) for x in result.links
    ]
    assert found == expected
    assert len(found) > 10
    assert {link.rule for link in result.links} == {"same-word", "company"}
    assert tag(client, text=ARTICLE, backends=[{"links": False}]).results[0].links == []


def test_known_names_are_those_of_the_tagger(tagger: Tagger) -> None:
    """Test each backend, in a worker process and in this process."""
    names = herdner.Names.of([("Winam", "PER"), ("Kisumu", "ORG", float("inf"))])
    handler = RequestHandler(tagger, "en", names)
    answer = TagResponse.model_validate(handler.tag(ARTICLE, [{"options": {}}, {"backend": "icm", "options": {}}], 0))
    for result, backend in zip(answer.results, (None, "icm"), strict=True):
        expected = tagger.tag(ARTICLE, backend=backend, names=names)
        assert as_tuples(result.entities) == as_tuples(expected.entities) != as_tuples(tagger.tag(ARTICLE).entities)
    first = tagger.tag(ARTICLE, names=names).entities[0]
    (why,) = tagger.explain(ARTICLE, names=names, offsets=(first.start, first.end))
    assert handler.explain(ARTICLE, first.start, first.end, {"options": {}}, 0) == why.to_dict()


@pytest.mark.slow
def test_names_that_the_model_has_no_class_for() -> None:
    with pytest.raises(ValueError, match="name 1: the model has no label 'BANK'; it has LOC, ORG, PER"):
        create_app("en", names=[("Winam", "BANK")], limits=Limits(n_workers=1))


def test_offsets_count_characters(client: Any) -> None:
    text = "\U0001f600\U0001f600 Ada Lovelace met \U0001d49c Charles Babbage."
    (result,) = tag(client, text=text).results
    assert result.entities
    for entity in result.entities:
        assert text[entity.start : entity.end] == entity.text


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "a" * 8_000, "\u202e<script>alert(1)</script>\x1b[31m"])
def test_odd_texts_are_tagged(client: Any, text: str) -> None:
    answer = tag(client, text=text, backends=["sum-product", {"backend": "viterbi", "links": False}])
    assert answer.n_characters == len(text)
    assert all(text[e.start : e.end] == e.text for result in answer.results for e in result.entities)


def test_about_says_what_there_is(client: Any) -> None:
    about = ServiceInfo.model_validate_json(client.get("/api/about").content)
    assert about.version == herdner.__version__
    assert about.labels == ["LOC", "ORG", "PER"]
    assert about.rules == ["same-word", "company"]
    assert about.default_backends == ["sum-product", "viterbi"]
    assert [entry.name for entry in about.backends] == sorted(herdner.BACKENDS)
    for entry in about.backends:
        assert set(entry.options) <= set(OPTIONS)
    assert about.limits.characters == 8_000


@pytest.mark.parametrize(
    ("choice", "options"),
    [
        ({}, {}),
        ({"backend": {"backend": "viterbi", "links": False}}, {"backend": "viterbi", "links": False}),
        ({"backend": {"backend": "gibbs", "options": {"n_sweeps": 30}}}, {"backend": "gibbs", "n_sweeps": 30}),
        ({"backend": "icm", "against": "best"}, {"backend": "icm", "against": "best"}),
    ],
)
def test_names_are_explained_as_by_the_tagger(client: Any, tagger: Tagger, choice: dict, options: dict) -> None:
    for expected in tagger.explain(ARTICLE, seed=5, **options)[:4]:
        span = {"start": expected.mention.start, "end": expected.mention.end}
        response = client.post("/api/explain", json={"text": ARTICLE, "seed": 5, **span, **choice})
        assert response.status_code == 200
        assert response.json() == expected.to_dict()
        assert ExplainResponse.model_validate_json(response.content).model_dump() == expected.to_dict()


# --- its description


def test_openapi_describes_every_field_and_its_examples_are_right(client: Any) -> None:
    description = client.get("/openapi.json").json()
    entry = description["paths"]["/api/tag"]["post"]
    assert set(entry["responses"]) == {"200", "400", "408", "413", "422", "500", "503", "504"}
    schemas = description["components"]["schemas"]
    for name in (
        "TagRequest",
        "FileRequest",
        "RequestEntity",
        "TextsResponse",
        "BackendChoice",
        "BackendOptions",
        "TagResponse",
        "BackendResult",
        "TaggedEntity",
        "TaggedLink",
        "CharacterSpan",
        "ExplainRequest",
        "ExplainResponse",
        "ExplainedPart",
    ):
        assert schemas[name]["description"]
        for field, schema in schemas[name]["properties"].items():
            assert schema.get("description"), f"{name}.{field}"
    (example,) = schemas["ExplainRequest"]["examples"]
    assert client.post("/api/explain", json=example).json()["text"] == "Kisumu"
    (example,) = schemas["FileRequest"]["examples"]
    assert client.post("/api/file", json=example).status_code == 200
    assert len(schemas["TagRequest"]["examples"]) == 3
    for example in schemas["TagRequest"]["examples"]:
        TagRequest.model_validate(example)
        assert client.post("/api/tag", json=example).status_code == 200


# --- what it refuses


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({}, "body: the request must contain either the key 'text' or the key 'texts', but has neither"),
        ({"text": 5}, "text: "),
        ({"text": "Ada", "colour": "red"}, "colour: unknown key; /docs lists the keys"),
        ({"text": "Ada", "backends": []}, "backends: must have at least 1 item, not 0"),
        ({"text": "Ada", "backends": ["gibbs"] * 9}, "backends: "),
        ({"text": "Ada", "backends": ["viterbo"]}, "there is no backend 'viterbo'"),
        ({"text": "Ada", "backends": [{"backend": "gibbs", "options": {"record": "trace"}}]}, "backends[0].options"),
        ({"text": "Ada", "backends": [{"backend": "gibbs", "options": {"n_sweeps": 10**9}}]}, "n_sweeps"),
        ({"text": "Ada", "backends": [{"backend": "gibbs", "options": {"damping": 0.5}}]}, "no option 'damping'"),
        ({"text": "Ada", "backends": [{"backend": "dhg", "options": {"scan": "spiral"}}]}, "scan"),
        ({"text": "Ada", "backends": [{"links": "yes"}]}, "links"),
        ({"text": "Ada met Ada.", "backends": ["viterbi"]}, "needs a chain"),
        ({"text": "Ada", "seed": -1}, "seed: "),
        ({"text": "Ada", "seed": 1.5}, "seed: "),
        (["Ada"], "the body must be a JSON object, sent with the header Content-Type: application/json"),
    ],
)
def test_wrong_requests_are_told_what_is_wrong(client: Any, request_: Any, said: str) -> None:
    assert said in refused(client.post("/api/tag", json=request_), 422)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"text": "Ada met Ada."}, "start: Field required"),
        ({"text": "Kenya won.", "start": -1, "end": 5}, "start: "),
        ({"text": "Kenya won.", "start": 0, "end": 4}, "characters 0 to 4 are not tagged as a name"),
        ({"text": "Kenya won.", "start": 0, "end": 5, "against": "Town"}, "no label 'Town'"),
        (
            {"text": "Kenya won.", "start": 0, "end": 5, "against": "LOC"},
            "'Kenya' already has the label LOC",
        ),
        ({"text": "Kenya won.", "start": 0, "end": 5, "backend": "viterbo"}, "there is no backend 'viterbo'"),
        ({"text": "Kenya won.", "start": 0, "end": 5, "backends": ["gibbs"]}, "backends: "),
    ],
)
def test_names_that_cannot_be_explained(client: Any, request_: Any, said: str) -> None:
    assert said in refused(client.post("/api/explain", json=request_), 422)


@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        (b"", {422}),
        (b"{oops", {400}),
        (b'{"text": "\xff"}', {400}),
        (b'{"text": "Ada", "\\ud800": 1}', {422}),
        (b'{"text": "Ada", "backends": ["\\ud800"]}', {422}),
        (b'{"text": "Ada", "seed": NaN}', {422}),
        (b'{"text": "Ada", "seed": 1' + b"0" * 5_000 + b"}", {400, 422}),
        (b"[" * 60_000, {400}),
    ],
)
def test_bodies_that_are_no_good_json(client: Any, body: bytes, statuses: set[int]) -> None:
    response = client.post("/api/tag", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in statuses
    refused(response, response.status_code)


def test_halves_of_characters_are_replaced(client: Any, tagger: Tagger) -> None:
    body = b'{"text": "Ada Lovelace\\ud800 sang. Ada Lovelace sang."}'
    response = client.post("/api/tag", content=body, headers={"Content-Type": "application/json"})
    expected = tagger.tag("Ada Lovelace\ufffd sang. Ada Lovelace sang.").entities
    assert as_tuples(TagResponse.model_validate_json(response.content).results[0].entities) == as_tuples(expected)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_only_json_is_taken_so_that_other_pages_cannot_post_forms(client: Any, kind: str) -> None:
    body = json.dumps({"text": "Ada"}).encode()
    answer = refused(client.post("/api/tag", content=body, headers={"Content-Type": kind}), 422)
    assert "sent with the header Content-Type: application/json" in answer


def test_texts_that_are_too_long(client: Any) -> None:
    assert "8,001 characters" in refused(client.post("/api/tag", json={"text": "a" * 8_001}), 413)
    assert "bytes" in refused(client.post("/api/tag", json={"text": "a" * 1_000_000}), 413)
    long = {"text": "a" * 8_001, "start": 0, "end": 1}
    assert "8,001 characters" in refused(client.post("/api/explain", json=long), 413)


@pytest.mark.parametrize(
    ("error", "status"),
    [(PoolBusy(), 503), (RequestTimeout(), 504), (WorkerFault("Traceback: secret"), 500), (KeyError("secret"), 500)],
)
def test_failures_tell_the_client_nothing_of_the_inside(
    client: Any, app: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any, error: Exception, status: int
) -> None:
    def run(_: bytes, **options: Any) -> bytes:
        raise error

    monkeypatch.setattr(app.state.pool, "run", run)
    response = client.post("/api/tag", json={"text": "Ada"})
    assert "secret" not in refused(response, status)
    assert ("secret" in caplog.text) == (status == 500)
    assert ("Retry-After" in response.headers) == (status == 503)


# --- pages and hosts


@pytest.mark.parametrize("path", ["/nothing", "/pages/index.html", "/pages/", "/..%2f..%2fapp.py", "/redoc", "/api"])
def test_nothing_but_the_pages_is_served(client: Any, path: str) -> None:
    assert refused(client.get(path, follow_redirects=False), 404) == "Not Found; see /docs"


def test_other_methods_are_refused(client: Any) -> None:
    assert refused(client.get("/api/tag"), 405) == "Method Not Allowed; see /docs"
    assert refused(client.post("/api/tag", json={"text": 5}), 422) == "text: must be a valid string"
    refused(client.post("/"), 405)
    assert client.head("/").status_code == 200


@pytest.mark.parametrize("path", PAGES)
def test_pages_load_nothing_from_elsewhere_and_set_no_cookie(client: Any, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert {name: response.headers[name] for name in HEADERS} == HEADERS
    assert "set-cookie" not in response.headers
    assert set(re.findall(r"\w+://[^\"'\s]*", response.text)) <= {"http://www.w3.org/2000/svg"}  # a name, no address
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", " onclick"):
        assert word not in response.text
    assert not re.search(r"<script(?![^>]* src=\"/)", response.text)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8765", "127.0.0.1:8765", "[::1]:8765", "herdner.example:80"])
def test_hosts_that_may_ask(client: Any, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "[x]"])
def test_names_that_were_rebound_are_refused(client: Any, host: str) -> None:
    assert "host name" in refused(client.get("/api/about", headers={"Host": host}), 400)


# --- many texts, files, health and figures

TEXT = "Winam Ferries lost in court. Winam will pay, said Charlotte Akinyi in Kisumu."


def test_many_texts_are_tagged_as_each_alone(client: Any) -> None:
    texts = [TEXT, "Winam sails.", "", "No name."]
    many = client.post("/api/tag", json={"texts": texts, "seed": 3}).json()["documents"]
    for text, each in zip(texts, many, strict=True):
        alone = client.post("/api/tag", json={"text": text, "seed": 3}).json()
        for one in (*each["results"], *alone["results"]):
            del one["seconds"]
        assert each == alone


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 422, "either the key 'text' or the key 'texts', but has neither"),
        ({"text": "a", "texts": ["a"]}, 422, "either the key 'text' or the key 'texts', but has both"),
        ({"texts": []}, 422, "texts"),
        ({"texts": ["a"] * 1001}, 422, "texts"),
        ({"texts": [1]}, 422, "texts[0]"),
        ({"texts": ["a" * 5000, "b" * 5000]}, 413, "10,000 characters"),
    ],
)
def test_too_many_texts_and_none_are_one_line(client: Any, body: Any, status: int, said: str) -> None:
    answer = client.post("/api/tag", json=body)
    assert answer.status_code == status
    assert said in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]


@pytest.mark.slow
def test_a_file_in_every_format_and_names_that_do_not_fit(client: Any) -> None:
    from herdner.corpora.formats import read_documents

    name = {"start": 0, "end": 13, "label": "ORG", "confidence": 0.5}
    for format in client.get("/api/about").json()["formats"]:
        answer = client.post("/api/file", json={"text": TEXT, "entities": [name], "format": format})
        assert answer.status_code == 200, format
        assert "attachment" in answer.headers["Content-Disposition"]
        if format not in ("text", "html"):
            (document,) = read_documents(io.BytesIO(answer.content), format)
            assert [(entity.label, entity.text) for entity in document.entities] == [("ORG", TEXT[:13])]
    for wrong, said in (
        ({"entities": [name, name]}, "overlaps another entity"),
        ({"entities": [{**name, "end": 10**6}]}, "is not inside the text"),
        (
            {"entities": [{**name, "start": 13}]},
            "the entity at 13..13 is empty, overlaps another entity, or is not inside the text, which has",
        ),
        ({"format": "pdf"}, "format must be one of"),
    ):
        answer = client.post("/api/file", json={"text": TEXT, "entities": [], "format": "jsonl", **wrong})
        assert (answer.status_code, said in answer.json()["detail"]) == (422, True)


def test_health_and_figures(client: Any) -> None:
    assert client.get("/health").json()["status"] == "ok"
    parser = pytest.importorskip("prometheus_client.parser")

    def figures() -> dict[tuple[str, ...], float]:
        answer = client.get("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain")
        families = parser.text_string_to_metric_families(answer.text)
        return {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}

    before = figures()
    client.post("/api/tag", json={"text": "In Kenya."})
    client.get("/nowhere")
    client.get("/nowhere/else")
    after = figures()
    grown = {key: after[key] - before.get(key, 0) for key in after}
    assert grown["herdner_requests_total", "/api/tag", "200"] == 1
    assert grown["herdner_requests_total", "other", "404"] == 2
    assert grown["herdner_characters_total",] == 9
    assert grown["herdner_request_seconds_count", "/api/tag"] == 1


def test_the_access_log_has_no_texts(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "herdner.integrations.serve.access"):
        client.post("/api/tag?secret=1", json={"text": "Ada Lovelace met Bob."})
        client.get("/none%0aherdner: forged")
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"
    posted, unknown = caplog.messages
    assert re.fullmatch(rf"{time} testclient POST /api/tag 200 \d+ ms", posted)
    assert re.fullmatch(rf"{time} testclient GET /none%0Aherdner%3A%20forged 404 \d+ ms", unknown)
    caplog.clear()
    client.get("/health")
    assert caplog.messages == []
