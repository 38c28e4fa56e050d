"""Warnings about texts in another language than that of the model."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from commands import Call
from data import shared_data
from english_corpora import read_gum, read_litbank, read_tweebank

import herdner
from herdner.corpora.formats import read_documents
from herdner.ner.language import MIN_WORDS, LanguageCheck, LanguageWarning, language_name
from herdner.text.document import Document
from herdner.text.sentences import SentenceRules
from herdner.text.tokenize import Tokenizer, TokenizerSettings

# The same text, written for this test.
TEXTS: dict[str, str] = json.loads((Path(__file__).parent / "texts_in_languages.json").read_text(encoding="utf-8"))
WITHOUT_SPACES = {language: TEXTS.pop(language) for language in ("ja", "zh")}
NAMES = (
    "Juan de la Cruz, Ludwig van der Berg, Maria dos Santos, Otto von der Au, Charles de Gaulle, Leonardo da Vinci,"
    " José de San Martín, Pieter van den Hoogenband, Vasco da Gama, Oscar de la Renta, Rio de Janeiro, El Salvador,"
    " Los Angeles, La Paz, Le Havre, Den Haag, Bad Homburg vor der Höhe, Frankfurt am Main, Châlons-en-Champagne,"
    " Stratford-upon-Avon, Reggio di Calabria, Sankt Goar, Las Palmas de Gran Canaria, Santiago de Compostela"
)


SCRIPTS = {"ar": "ar", "bg": "Cyrl", "el": "el", "fa": "ar", "he": "he", "ru": "Cyrl", "uk": "Cyrl"}  # of short texts


def other_language(text: str, language: str = "en") -> str | None:
    return LanguageCheck(language)(Tokenizer()(text))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["en", "nb", "da", "sv", "pt", "de"])
@pytest.mark.parametrize("language", TEXTS)
def test_only_texts_of_other_languages_are_recognised(model: str, language: str) -> None:
    expected = None if model == language else language
    assert other_language(TEXTS[language], model) == expected
    assert other_language(TEXTS[language].upper(), model) == expected


@pytest.mark.parametrize("language", WITHOUT_SPACES)
def test_scripts_without_spaces_are_recognised_by_their_letters(language: str) -> None:
    assert other_language(WITHOUT_SPACES[language]) == language


@pytest.mark.parametrize("model", ["en", "nb", "da", "sv", "pt", "de"])
def test_names_and_short_texts_pass(model: str) -> None:
    assert other_language(NAMES, model) is None
    for language, text in TEXTS.items():
        words = text.split()
        assert len(words) >= MIN_WORDS
        expected = SCRIPTS.get(language)
        assert other_language(" ".join(words[: MIN_WORDS // 2]), model) == expected
        assert other_language(" ".join(words[:4]), model) == expected
    assert other_language("", model) is None
    assert other_language("東京", model) is None


def test_one_line_in_another_script_is_recognised() -> None:
    assert other_language("Владимир приехал в Москву вчера.") == "Cyrl"
    assert other_language("安倍晋三首相は東京で記者会見した。") == "ja"
    assert other_language("Στην Αθήνα μίλησε χθες.") == "el"
    assert other_language("Mr Иванов flew to Moscow with Ms Petrova.") is None
    assert other_language("Владимир приехал в Москву вчера.", "uk") is None
    assert LanguageCheck("en").message("Cyrl").startswith("the text seems to be in Cyrillic script, but the model is")


def test_a_quotation_in_another_language_passes_but_an_english_title_does_not_hide_the_language() -> None:
    assert other_language(TEXTS["en"] + " " + TEXTS["en"] + " " + " ".join(TEXTS["de"].split()[:40])) is None
    assert other_language("The Ferries of the Lake: " + TEXTS["de"]) == "de"


def test_a_model_of_an_unknown_language_never_warns() -> None:
    assert other_language(TEXTS["de"], "xx") is None
    assert LanguageCheck("sr")(Tokenizer()(TEXTS["de"])) == "de"
    assert (language_name("sr"), language_name("ja"), language_name("xx")) == (
        "Croatian or Serbian", "Japanese", "xx",
    )  # fmt: skip


@pytest.fixture(scope="module")
def tagger() -> herdner.Tagger:
    return herdner.load("en")


def test_the_tagger_warns_of_a_text_and_once_of_a_stream(tagger: herdner.Tagger) -> None:
    with pytest.warns(LanguageWarning, match="seems to be German, but the model is for English") as caught:
        tagger.tag(TEXTS["de"])
    assert caught[0].filename == __file__
    with pytest.warns(LanguageWarning, match="Portuguese") as caught:
        assert len(list(tagger.pipe([TEXTS["en"], TEXTS["pt"], TEXTS["pt"], TEXTS["sv"]]))) == 4
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger.tag(TEXTS["en"])


def test_short_texts_of_a_stream_are_checked_together(tagger: herdner.Tagger, call: Call, tmp_path: Path) -> None:
    """The rows of a table of short messages, none of which has enough words for the check."""
    pieces = {code: re.findall(r"(?:\S+\s+){1,12}", 3 * TEXTS[code]) for code in ("fr", "en")}
    with pytest.warns(LanguageWarning, match="French") as caught:
        list(tagger.pipe(pieces["fr"]))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(tagger.pipe(pieces["en"]))
        list(tagger.pipe(["Jean Dupont, Marie Lefèvre, Lyon"] * 40))
    for code, texts in pieces.items():
        (tmp_path / f"{code}.csv").write_text("text\n" + "".join(f'"{text}"\n' for text in texts), encoding="utf-8")
    messages = call("tag", tmp_path / "en.csv", tmp_path / "fr.csv").err
    assert messages.count("seems to be") == messages.count("fr.csv: the text seems to be French") == 1


def test_a_warning_points_to_the_line_that_called_herdner(tagger: herdner.Tagger) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LanguageWarning)
        herdner.pseudonymise(TEXTS["de"], model=tagger)
        list(tagger.pipe([TEXTS["de"]], collection=True))
        tagger.predict([TEXTS["de"].split()])
    assert len(caught) == 3
    assert {each.filename for each in caught} == {__file__}


def test_the_command_line_warns_once_for_each_file(call: Call, tmp_path: Path) -> None:
    for language in ("de", "en", "sv"):
        (tmp_path / f"{language}.txt").write_text(TEXTS[language], encoding="utf-8")
    lines = [f'{{"text": "{TEXTS["fr"]}"}}' for _ in range(3)]
    (tmp_path / "fr.jsonl").write_text("\n".join(lines), encoding="utf-8")
    files = [str(tmp_path / name) for name in ("de.txt", "en.txt", "fr.jsonl", "sv.txt")]
    done = call("tag", *files)
    assert done.code == 0
    messages = [line for line in done.err.splitlines() if "seems to be" in line]
    assert [(line.split(": ")[1], line.split("seems to be ")[1].split(",")[0]) for line in messages] == [
        (files[0], "German"), (files[2], "French"), (files[3], "Swedish"),
    ]  # fmt: skip


def test_the_component_of_spacy_warns() -> None:
    import spacy

    nlp = spacy.blank("de")
    with pytest.warns(
        LanguageWarning, match="the pipeline is for German, but the model 'en' is for English; use"
    ) as caught:
        nlp.add_pipe("herdner")
    assert len(caught) == 1
    with pytest.warns(LanguageWarning, match="German"):
        nlp(TEXTS["de"])


def test_the_component_of_spacy_does_not_warn_about_a_model_of_any_language(tmp_path: Path) -> None:
    import spacy

    documents = [Document.from_tokens([["Ada", "left"]], [["B-PER", "O"]])]
    settings = TokenizerSettings("xx", sentences=SentenceRules())
    herdner.Tagger(tokenizer=settings, max_iterations=2).fit(documents).save(tmp_path / "m")
    with warnings.catch_warnings():
        warnings.simplefilter("error", LanguageWarning)
        spacy.blank("en").add_pipe("herdner", config={"model": str(tmp_path / "m")})


def test_the_service_returns_the_warning(tagger: herdner.Tagger) -> None:
    from herdner.integrations.serve.worker import RequestHandler

    handler = RequestHandler(tagger, "en")
    backends = [{"backend": None, "links": None, "options": {}}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LanguageWarning)
        assert "German" in handler.tag(TEXTS["de"], backends, 0)["warnings"][0]
    assert handler.tag(TEXTS["en"], backends, 0)["warnings"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("conll2003/eng.testa", "conll2003"),
        ("uner_ewt/en_ewt-ud-dev.iob2", "uner"),
        ("wikigold/wikigold.dev", "wikigold"),
        ("worldwide/dev", "worldwide"),
        ("btc/btc.dev", "btc"),
        ("wnut17/emerging.dev.conll", "wnut17"),
        ("ieer", "ieer"),
    ],
)
def test_no_english_development_file_is_in_another_language(path: str, format: str) -> None:
    options = {"tokenizer": Tokenizer()} if format == "ieer" else {}
    assert_english(read_documents(shared_data(f"ner/{path}"), format, **options))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "read"), [("tweebank/dev.bio", read_tweebank), ("gum", read_gum), ("litbank", read_litbank)]
)
def test_no_post_no_genre_and_no_novel_is_in_another_language(
    path: str, read: Callable[[Path], Iterable[Document]]
) -> None:
    assert_english(read(shared_data(f"ner/{path}")))


def assert_english(documents: Iterable[Document]) -> None:
    check = LanguageCheck("en")
    documents = list(documents)
    found = [part.text[:80] for document in documents for part in (document, *parts(document)) if check(part)]
    assert found == []
    assert not any(map(check.of_stream(), documents))


def parts(document: Document, n_sentences: int = 10) -> list[Document]:
    sentences = list(document.sentences())
    return [Document.from_tokens(sentences[i : i + n_sentences]) for i in range(0, len(sentences), n_sentences)]
