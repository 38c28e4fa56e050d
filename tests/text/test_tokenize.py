"""Tokenization and sentence segmentation: invariants, comparison with spaCy, news texts, hostile texts."""

from __future__ import annotations

import copy
import functools
import json
import math
import pickle
import re
import signal
import string
import subprocess
import sys
import time
from functools import partial
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any

import pytest
import spacy
from data import ELSEWHERE, REPOSITORY, shared_data
from hypothesis import given
from hypothesis import strategies as st
from quick import examples
from tokenizer_rules import written

from herdner._ext.hashing import hash_string
from herdner.text.document import Document
from herdner.text.sentences import CLOSERS, ENDS, ENGLISH, OPENERS, SentenceRules
from herdner.text.splitting import LANGUAGES_WITH_RULES
from herdner.text.tokenize import (
    DESIGNATORS,
    INFIXES,
    LONGEST_RUN,
    PREFIXES,
    SUFFIXES,
    Tokenizer,
    TokenizerSettings,
)

TOKENIZER = Tokenizer()
FORGETFUL = Tokenizer(cache_characters=0)
ANY_TEXT = st.text(st.characters(exclude_categories=()))
NEWS_WORDS = (
    "Kenya U.S. Mr. Smith's `` '' \" “Moi ” ( ) - -- London-based U.S.-led ... ? ! 3.5 can't Co. The 😀 中文。 :)"
)
NEWS_GAPS = [" ", " ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u200b", "\ud800", "\x00"]
NEWS_TEXT = st.lists(st.sampled_from(NEWS_WORDS.split()) | st.sampled_from(NEWS_GAPS)).map("".join)
BINARY = (".gz", ".npz", ".parquet", ".png", ".spacy", ".zip")
LINE_BREAK = re.compile("\r\n|[\n\x0b\x0c\r\x85\u2028\u2029]")


def check_laws(text: str, document: Document) -> None:
    assert document.text is text
    assert "".join(document.tokens) == "".join(text.split())
    for token, start, end in zip(document.tokens, document.token_starts, document.token_ends, strict=True):
        assert text[start:end] == token
        assert token
    offsets = document.sentence_offsets
    assert offsets[0] == 0
    assert offsets[-1] == len(document.tokens)
    assert (offsets[1:] > offsets[:-1]).all()


@given(ANY_TEXT | NEWS_TEXT)
def test_tokens_cover_all_but_white_space_and_sentences_cover_the_tokens(text: str) -> None:
    check_laws(text, TOKENIZER(text))


@given(NEWS_TEXT)
def test_a_filled_cache_changes_nothing(text: str) -> None:
    assert FORGETFUL.tokens(text) == TOKENIZER.tokens(text) == TOKENIZER.tokens(text)


@functools.cache
def spacy_tokenizer(language: str) -> Any:
    """Build spaCy's tokenizer with herdner's additional rules."""
    nlp = spacy.blank(language)
    rules = nlp.tokenizer
    rules.prefix_search = spacy.util.compile_prefix_regex([*PREFIXES, *nlp.Defaults.prefixes]).search
    rules.suffix_search = spacy.util.compile_suffix_regex([*SUFFIXES, *nlp.Defaults.suffixes]).search
    rules.infix_finditer = spacy.util.compile_infix_regex([*INFIXES, *nlp.Defaults.infixes]).finditer
    for word in (*DESIGNATORS, *ENGLISH.abbreviations):
        rules.add_special_case(word, [{spacy.symbols.ORTH: word}])
    return rules


def spacy_tokens(text: str, language: str = "en") -> list[str]:
    return [token.text for token in spacy_tokenizer(language)(text) if not token.text.isspace()]


@given(st.text(st.sampled_from("abcDEF.'’,-/_&$3 \n“”`()"), max_size=40))
def test_splitting_words_equals_splitting_the_text(text: str) -> None:
    assert TOKENIZER.tokens(text) == spacy_tokens(text)


@pytest.mark.parametrize("path", ["APW_19980314", "NYT_19980315"])
def test_splitting_words_equals_spacys_tokenizer_on_news(path: str) -> None:
    text = shared_data(f"ner/ieer/{path}").read_text(encoding="latin-1")
    assert TOKENIZER.tokens(text) == spacy_tokens(text)


@functools.cache
def hard_runs(language: str) -> st.SearchStrategy[str]:
    """Draw exceptions of the language and parts of them among punctuation, digits, units and letters."""
    exceptions = [word for word in spacy_tokenizer(language).rules if word.split() == [word]]
    parts = st.sampled_from([*"abcDEFéßж7 .'’,-/_&$%°€“”`():;=|*~!?@#\u200b中😀[]^²†•›—"]) | st.sampled_from(exceptions)
    return st.lists(parts, max_size=9).map("".join)


slow = partial(pytest.param, marks=pytest.mark.slow)
# With words that are never cut, with elision, without Latin letters, right to left.
LANGUAGES = ["en", *(slow(language) for language in ("de", "fr", "hu", "fi", "ru", "el", "he"))]


@pytest.mark.parametrize("language", LANGUAGES)
@examples(100)
@given(data=st.data())
def test_hard_words_are_split_as_by_spacy(language: str, data: st.DataObject) -> None:
    text = data.draw(hard_runs(language))
    assert tokenizer_of(language).tokens(text) == spacy_tokens(text, language)


@functools.cache
def tokenizer_of(language: str) -> Tokenizer:
    return Tokenizer(TokenizerSettings(language))


@pytest.mark.slow
def test_all_words_of_the_corpora_are_split_as_by_spacy() -> None:
    files = [path for path in shared_data("ner").rglob("*") if path.is_file() and path.suffix not in BINARY]
    words = sorted({word for path in files for word in path.read_text("latin-1").split() if len(word) <= LONGEST_RUN})
    assert len(words) > 100_000
    for begin in range(0, len(words), 10_000):
        text = " ".join(words[begin : begin + 10_000])
        assert TOKENIZER.tokens(text) == spacy_tokens(text)


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES_WITH_RULES)
def test_the_shipped_rules_are_those_of_spacy(language: str) -> None:
    """The exported rules equal those of the installed spaCy; later versions of spaCy may differ."""
    name = LANGUAGES_WITH_RULES[language]
    shipped = json.loads((REPOSITORY / f"herdner/data/{name}.json").read_text(encoding="utf-8"))
    if spacy.about.__version__.rpartition(".")[0] not in shipped["source"]:
        pytest.skip(f"spaCy {spacy.about.__version__} is not the one that the rules come from")
    assert {**json.loads(json.dumps(written(language))), "source": ""} == {**shipped, "source": ""}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("the London-based firm", "the London - based firm"),
        ("U.S.-led", "U.S. - led"),
        ("U.N.-backed", "U.N. - backed"),
        ("U.S./Mexico", "U.S. / Mexico"),
        ("(AP)-based", "( AP )- based"),
        ("D-Ore.", "D - Ore."),
        ("NAIROBI, Kenya (AP) _ Thousands", "NAIROBI , Kenya ( AP ) _ Thousands"),
        ("WASHINGTON--The", "WASHINGTON -- The"),
        ("--Paris", "-- Paris"),
        ("Paris-", "Paris -"),
        ("LONDON—The", "LONDON — The"),
        ("``Moi must go,'' he", "`` Moi must go , '' he"),
        ("“Moi must go,” he", "“ Moi must go , ” he"),
        ("Obama’s plan", "Obama ’s plan"),
        ("\ufeffKenya", "\ufeff Kenya"),
        ("Kenya\u200bUganda", "Kenya \u200b Uganda"),
        ("|Kenya|Uganda|", "| Kenya | Uganda |"),
        ("Kenya\x00", "Kenya \x00"),
        ("Lt. Smith of FDCH, INC.", "Lt. Smith of FDCH , INC."),
        ("Kenya😀", "Kenya 😀"),
        ("Kappa S.p.A. and Delta s.r.o.", "Kappa S.p.A. and Delta s.r.o."),
        ("Delta Sdn. Bhd., Kappa Pte. Ltd.", "Delta Sdn. Bhd. , Kappa Pte. Ltd."),
        ("Novo A/S.", "Novo A/S ."),
        (
            "Kenya[1] Company[^12]. Wu[2][3], Nairobi[a] [4]Moi",
            "Kenya [1] Company [^12] . Wu [2] [3] , Nairobi [a] [4] Moi",
        ),
        ("Wu¹,² Moi³⁴ Odero†‡ ¹²Kenya †Wu a²b", "Wu ¹ , ² Moi ³⁴ Odero † ‡ ¹² Kenya † Wu a²b"),
        ("•Moi →Wu ‹Kenya› ‹Wu›,", "• Moi → Wu ‹ Kenya › ‹ Wu › ,"),
        ("Moi;Wu;Odero and AT&amp;T, M&uuml;ller", "Moi ; Wu ; Odero and AT&amp;T , M&uuml;ller"),
        ("“Moi”—Wu said—“Go", "“ Moi ”— Wu said —“ Go"),
    ],
)
def test_names_are_tokens_of_their_own(text: str, tokens: str) -> None:
    assert TOKENIZER.tokens(text) == tokens.split(" ")


ENTITY = re.compile(r'<b_enamex type="\w+"[^>]*>(.*?)<e_enamex>', re.S)


@pytest.mark.parametrize("path", ["APW_19980314", "APW_19980424", "NYT_19980315"])
def test_gold_names_fall_on_token_borders(path: str) -> None:
    marked = shared_data(f"ner/ieer/{path}").read_text(encoding="latin-1")
    marked = re.sub(r"<(?![be]_enamex)[^>]*>", "", marked)
    text, spans, position = "", [], 0
    for match in ENTITY.finditer(marked):
        text += marked[position : match.start()]
        spans.append((len(text), len(text) + len(match[1])))
        text, position = text + match[1], match.end()
    text += marked[position:]
    document = TOKENIZER(text)
    borders = set(document.token_starts.tolist()) | set(document.token_ends.tolist())
    astray = [text[start:end] for start, end in spans if not {start, end} <= borders]
    assert len(spans) > 300
    assert set(astray) <= {"P&AMP;G"}


def sentences(text: str) -> list[str]:
    document = TOKENIZER(text)
    spans = pairwise(document.sentence_offsets.tolist())
    return [" ".join(text[document.token_starts[a] : document.token_ends[b - 1]].split()) for a, b in spans]


def plain_borders(document: Document, rules: SentenceRules = ENGLISH) -> list[int]:
    """Find the first tokens of sentences by a plain implementation of the rules."""
    text, tokens, n = document.text, document.tokens, document.n_tokens
    starts, ends = document.token_starts.tolist(), document.token_ends.tolist()
    borders = {0, n}
    for i, token in enumerate(tokens):
        after = i + 1
        while after < n and starts[after] == ends[after - 1] and tokens[after][0] in CLOSERS:
            after += 1
        if token[-1] not in ENDS or after == n or starts[after] == ends[after - 1]:
            continue
        word = next((w for w in tokens[after:] if w[0] not in OPENERS), tokens[-1])
        if token[-1] == "." and token.strip("."):
            titles = {*rules.titles, *(title.upper() for title in rules.titles)}
            begins = token not in titles and word in rules.starters
        else:
            begins = not word[0].islower() or (len(token) == 1 and token != "\u2026" and after == i + 1)
        if begins:
            borders.add(after)
    breaks = [0, *(match.end() for match in LINE_BREAK.finditer(text)), len(text) + 1]
    lines = []  # number, first token, last token, width, indent
    for number, (begin, end) in enumerate(pairwise(breaks)):
        inside = [i for i in range(n) if begin <= starts[i] < end]
        if inside:
            lines.append((number, inside[0], inside[-1], ends[inside[-1]] - begin, starts[inside[0]] - begin))
    first_words = [
        tokens[line[1]]
        for last, line in pairwise(lines)
        if line[0] == last[0] + 1 and line[1] not in borders and line[4] <= last[4]
    ]
    opened = [word[0].islower() for word in first_words]
    ragged = opened.count(True) >= 2 and 2 * opened.count(True) >= len(opened)
    room = sorted(line[3] for line in lines)[math.ceil((0.75 if ragged else 0.95) * (len(lines) - 1))] if lines else 0
    n_title = sum(word[:1].isupper() and word[1:2].islower() for word in first_words)
    n_upper = sum(word[0].isupper() for word in first_words)
    is_narrow = room < 40 and n_upper > 0 and 4 * opened.count(True) <= n_upper
    n_capitals, n_small = sum(word[0].isupper() for word in tokens), sum(word[0].islower() for word in tokens)
    is_list = (is_narrow or (n_title >= 4 and not any(opened))) and 6 * n_small <= n_capitals
    for (number, _, last, width, indent), (next_number, first, _, _, next_indent), following in zip(
        lines, lines[1:], [*lines[2:], None], strict=False
    ):
        letters = len(text[starts[first] :].split()[0])
        fits = width + 1 + letters <= room
        end = text[ends[last] - 1]
        if text[starts[first]].islower():
            goes_on = width > (0.5 if ragged else 0.6) * room
        else:
            begins_paragraph = following is not None and following[0] == next_number + 1 and following[4] < next_indent
            goes_on = ragged and width > room / 2 and end != ":" and next_indent <= indent and not begins_paragraph
        ends_open = end in string.ascii_letters + string.digits + ",;-"
        if (
            is_list
            or room > 100
            or next_number > number + 1
            or (fits and not goes_on)
            or (next_indent > indent and not ends_open)
        ):
            borders.add(first)
    for after in range(1, n):
        gap = text[ends[after - 1] : starts[after]]
        if not LINE_BREAK.search(gap) and ("\t" in gap or len(gap) >= 4):
            borders.add(after)
    return sorted(borders)


@given(ANY_TEXT | NEWS_TEXT | st.lists(NEWS_TEXT, min_size=2).map("\n".join))
def test_sentences_begin_where_the_rules_say(text: str) -> None:
    document = TOKENIZER(text)
    if document.n_tokens:
        assert document.sentence_offsets.tolist() == plain_borders(document)


def test_sentences_of_news_begin_where_the_rules_say() -> None:
    for path in sorted(shared_data("ner/ieer").glob("*_1998*")):
        text = path.read_text(encoding="utf-8")
        for article in (text[i : i + 3000] for i in range(0, 60_000, 3000)):
            document = TOKENIZER(article)
            assert document.n_tokens == 0 or document.sentence_offsets.tolist() == plain_borders(document)


@pytest.mark.parametrize(
    "text",
    [
        "He left.|She stayed.",
        "Mr. J. R. Smith met Dr. Jones.|They talked.",
        "He lives in the U.S.|The others do not.",
        "The U.S. Senate met Gen. Brown at 3 p.m. Tuesday.",
        "It cost No. 4 seed Siemerink $3.5 million.|He paid.",
        "``Moi must go,'' he said.|``The tax is high.''|Nobody heard.",
        "“Moi must go.”|He left.",
        "``Would I go?'' he asked.",
        "He works for Smith Inc. and lives in Reno, Nev.|The firm pays.",
        "NAIROBI, Kenya (AP) _ Thousands protested.|They sang.",
        "SHAH ALAM, Thurs. - The company said so.",
        "DEAL BY FDCH, INC. AND WORLD TIMES",
        "Yes.|(No, he said.)|Perhaps.",
        "i like it.|me too",
        "Well... perhaps not.",
        "Kenya.Uganda is one run.",
        "Kappa Pte. Ltd. sued Delta S.r.l. in May.|The firm was bought by Kappa S.p.A.|He left Novo A/S.|They stayed.",
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str) -> None:
    assert sentences(text.replace("|", " ")) == text.split("|")


WRAPPED = """Kenyans protest tax hikes

\t   NAIROBI, Kenya (AP) _ Thousands of laborers, students and
opposition politicians on Saturday protested tax hikes imposed by
their cash-strapped government, said a leader of a union named Mr.
Smith of the capital. They blamed the President, Daniel arap Moi,
for it
\t   ``Moi must go,'' the crowd chanted in the streets of the capital
on Saturday.
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\u2028"])
def test_wrapped_lines_are_joined_and_paragraphs_are_not(newline: str) -> None:
    assert sentences(WRAPPED.replace("\n", newline)) == [
        "Kenyans protest tax hikes",
        "NAIROBI, Kenya (AP) _ Thousands of laborers, students and opposition politicians on Saturday protested tax "
        "hikes imposed by their cash-strapped government, said a leader of a union named Mr. Smith of the capital.",
        "They blamed the President, Daniel arap Moi, for it",
        "``Moi must go,'' the crowd chanted in the streets of the capital on Saturday.",
    ]


RAGGED = """Dear all,

we expect that Chancellor Angela
Merkel will speak on Monday before the United
Nations, where she is
the first to speak, see https://example.org/a/very/long/address/that/is/wider/than/all/lines/of/this/text.html
for a list of all speakers
and of the rooms. Some of them
will be closed.

Kind regards
Tom Baker
Head of Sales
"""


def test_lines_wrapped_by_hand_are_joined() -> None:
    assert sentences(RAGGED) == [
        "Dear all,",
        "we expect that Chancellor Angela Merkel will speak on Monday before the United Nations, where she is the first"
        " to speak, see https://example.org/a/very/long/address/that/is/wider/than/all/lines/of/this/text.html for a"
        " list of all speakers and of the rooms.",
        "Some of them will be closed.",
        "Kind regards",
        "Tom Baker",
        "Head of Sales",
    ]


def test_one_paragraph_per_line_and_headlines_end_at_the_line() -> None:
    long = "A paragraph that a program wrote on one line, without wrapping, so it is longer than a screen is wide " * 2
    text = f"TAX HIKES IN KENYA\n{long}\nanother line\n{long}"
    assert sentences(text) == ["TAX HIKES IN KENYA", long.strip(), "another line", long.strip()]


@pytest.mark.parametrize(
    "text",
    [
        "Ada Smith|Peter Jones|Maria Gonzalez|Hiroshi Tanaka",
        "Ada Smith, Leeds|Peter Jones, York",
        "ADA SMITH|PETER JONES|MARIA GONZALEZ",
        "Ada Smith, Head of Sales, Brightwater Foods Ltd., Leeds|Peter Jones, Head of Marketing, Arko plc, Bath|"
        "Maria Gonzalez, Head of Research, Vertex Biolabs, Oslo|Hiroshi Tanaka, Director, Orbit Ferries, Newcastle|"
        "Kofi Mensah, Assistant Director, Delta Bank, Accra City",
    ],
)
def test_each_line_of_a_list_is_a_sentence(text: str) -> None:
    assert sentences(text.replace("|", "\n")) == text.split("|")


@pytest.mark.parametrize(
    "text",
    [
        "The chancellor met Emmanuel|Macron in Paris, where the two|spoke for an hour about the|new bridge",
        "The chancellor met Emmanuel|Macron in Paris",
        "Die Kanzlerin traf Emmanuel|Macron und Angela Merkel",
        "Bundeskanzlerin Angela|Merkel besuchte Paris",
        "大臣は東京で記者会見を|開き新しい橋について|話した",
    ],
)
def test_narrow_columns_of_prose_are_joined(text: str) -> None:
    assert sentences(text.replace("|", "\n")) == [text.replace("|", " ")]


def test_cells_of_a_row_are_sentences() -> None:
    assert sentences("Ada Smith\tHarwick Ltd.\tLeeds") == ["Ada Smith", "Harwick Ltd.", "Leeds"]
    assert sentences("Ada Smith    Harwick Ltd.      Leeds") == ["Ada Smith", "Harwick Ltd.", "Leeds"]
    assert sentences("Ada  Smith   spoke") == ["Ada Smith spoke"]


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\u00a0\u3000"])
def test_text_without_tokens_gives_a_document_without_sentences(text: str) -> None:
    document = TOKENIZER(text)
    assert document.text == text
    assert list(document.tokens) == []
    assert document.sentence_offsets.tolist() == [0]


@pytest.mark.parametrize("run", ["a", "(", "A.", "ab,", "中。", "😀", '."', "-a", "\ud800"])
def test_a_million_characters_without_white_space(run: str) -> None:
    text = run * (1_000_000 // len(run))
    before = time.process_time()
    document = TOKENIZER(text)
    assert time.process_time() - before < 30
    assert "".join(document.tokens) == text
    assert max(map(len, document.tokens)) <= LONGEST_RUN


@pytest.mark.slow
def test_memory_does_not_grow_with_the_words_seen() -> None:
    program = """
import random, sys
from pathlib import Path
from herdner.text.tokenize import Tokenizer
def resident(): return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
def stream(words):
    for _ in range(words // 1000):
        tokenizer(" ".join("".join(draw.choices("abcdefghijkl'.AB", k=9)) for _ in range(1000)))
tokenizer, draw = Tokenizer(cache_characters=200_000), random.Random(1)
stream(100_000)
before = resident()
stream(300_000)
print(resident() - before)
"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc to read the resident memory")
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ELSEWHERE)
    grown = int(run.stdout)
    # 300,000 distinct words kept for ever would be over 60 MB.
    assert grown < 25_000_000


def test_settings_are_plain_data() -> None:
    rules = TokenizerSettings(sentences=SentenceRules(titles=("Sr.",), starters=("El",)), language="es")
    assert TokenizerSettings.from_dict(json.loads(json.dumps(rules.to_dict()))) == rules
    assert TokenizerSettings.from_dict({}) == TokenizerSettings()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rules": 2}, "newer herdner"),
        ({"colour": 1}, "unknown key 'colour'"),
        ({"language": "../en"}, "language"),
        ({"language": "qq"}, "qq"),
        ({"language": "zh"}, "word segmenter"),
        ({"sentences": {"titles": [1]}}, "'titles' must be a list of words"),
        ({"sentences": {"titels": []}}, "unknown key 'titels'"),
    ],
)
def test_wrong_settings_are_named(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Tokenizer(TokenizerSettings.from_dict(values))("Some-thing to split.")


def test_other_languages_and_other_words() -> None:
    spanish = Tokenizer(TokenizerSettings("es", sentences=SentenceRules(titles=("Sr.",))))
    assert spanish.tokens("El Sr. Pérez vive en Madrid.") == ["El", "Sr.", "Pérez", "vive", "en", "Madrid", "."]


def test_copies_tokenize_alike() -> None:
    for twin in (copy.deepcopy(TOKENIZER), pickle.loads(pickle.dumps(TOKENIZER))):
        assert twin.tokens("the U.S.-led talks") == TOKENIZER.tokens("the U.S.-led talks")


def test_importing_herdner_does_not_import_spacy() -> None:
    program = "import sys, herdner, herdner.text.tokenize; print('spacy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], cwd=ELSEWHERE, check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "False"


def test_documents_streams() -> None:
    def texts():
        yield "One."
        raise AssertionError("read ahead")

    assert list(next(TOKENIZER.documents(texts())).tokens) == ["One", "."]


def test_words_with_colliding_hashes_are_found() -> None:
    """There are more of them than the number of slots that a look-up tries."""
    words = list(islice((word for word in map("w{}".format, count()) if not hash_string(word) % 1024), 100))
    tokenizer = Tokenizer()
    assert all(tokenizer.tokens(" ".join(words)) == words for _ in range(2))


@pytest.mark.slow
@given(st.lists(ANY_TEXT | NEWS_TEXT))
def test_a_batch_is_tokenized_like_single_texts(texts: list[str]) -> None:
    alone = list(map(Tokenizer(), texts))
    assert all(tokenizer.tokenize_batch(texts) == alone for tokenizer in (TOKENIZER, FORGETFUL))


def test_a_cache_that_fills_within_a_text_keeps_the_words_of_that_text() -> None:
    tokenizer = Tokenizer(cache_characters=100)
    tokenizer.tokens("It was known.")
    text = "It was " + " ".join(f"new{i}" for i in range(60)) + " " + "ab," * 200 + " known."
    assert tokenizer.tokens(text) == Tokenizer().tokens(text)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_a_signal_handler_may_use_the_interrupted_tokenizer() -> None:
    tokenizer, calls = Tokenizer(), count()
    text = "Ada Lovelace met Charles Babbage in London."
    timed = True

    def handler(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        number = next(calls)
        assert tokenizer.tokens(f"{text} handled{number}") == [*words, f"handled{number}"]
        if timed:  # a signal that arrived before the timer was stopped does not start it again
            signal.setitimer(signal.ITIMER_REAL, 1e-4)

    words = tokenizer.tokens(text)
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 1e-4)
    try:
        for i in range(3000):
            assert tokenizer.tokens(f"{text} word{i}") == [*words, f"word{i}"]
    finally:
        timed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert next(calls)
