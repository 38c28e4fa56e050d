"""What goes over the wire, as OpenAPI describes it."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from typing_extensions import Self

MOST_BACKENDS = 8
MOST_TEXTS = 1000
MOST_ENTITIES = 100_000
MOST_SWEEPS = 100_000
USUAL_SWEEPS = 100
LONG = 10_000_000  # cost of a request that takes more than a second or so
_LARGEST_SEED = 2**53 - 1  # the largest number that JavaScript writes exactly

EXAMPLE = "Winam Ferries lost in court. Winam will pay, said Charlotte Akinyi in Kisumu."


class _Given(BaseModel):
    """What a client sends: nothing but these fields, of just these types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Options(_Given):
    """Options of a backend that a request may set: those that bear on the result, not on memory or threads.

    Each backend has some of them (`GET /api/about` says which); those left out have the backend's own defaults.
    """

    n_sweeps: int | None = Field(None, ge=1, le=MOST_SWEEPS, description="Sweeps over the document.")
    burn_in: int | None = Field(None, ge=0, le=MOST_SWEEPS, description="Sweeps at the start that are not counted.")
    n_bins: int | None = Field(
        None, ge=1, le=65_536, description="Bins of conditional probability (dhg, circular-dhg, rdhg)."
    )
    error_bound: float | None = Field(None, ge=0, description="Herd only above this weight (bounded-error).")
    sharing: str | None = Field(None, max_length=64, description='Who shares a herding weight, as in "bins(64)".')
    scan: str | None = Field(None, max_length=64, description='Order of updates, as in "checkerboard".')
    annealing: str | None = Field(None, max_length=64, description='Inverse temperatures, as in "linear(0.1, 4)".')
    form: str | None = Field(None, max_length=64, description='"circular" or "threshold" herding.')
    damping: float | None = Field(None, gt=0, le=1, description="Of messages or distributions; 1 is undamped.")
    tolerance: float | None = Field(None, ge=0, description="Change at which messages count as converged.")


OPTIONS = tuple(Options.model_fields)


class Choice(_Given):
    """A way to tag: a backend, its options, and whether mentions are linked."""

    backend: str | None = Field(
        None, max_length=64, description="Name of an inference backend; null is the model's own.", examples=["gibbs"]
    )
    options: Options = Field(default_factory=lambda: Options.model_validate({}), description="Options of this backend.")

    @property
    def sweeps(self) -> int:
        """About as many as the backend will make."""
        return self.options.n_sweeps or USUAL_SWEEPS

    links: bool | None = Field(
        None, description="Whether the mentions of a name are linked; null is as the model has it. viterbi needs false."
    )


def _well_formed(text: str) -> str:
    """Halves of a character, which JSON can write and UTF-8 cannot, replaced as the reader of JSON lines does it."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _named(value: Any) -> Any:
    return {"backend": value} if isinstance(value, str) else value


_Text = Annotated[str, AfterValidator(_well_formed)]
_TEXT = "The text; `GET /api/about` says how many characters it may have."
_Named = Annotated[Choice, BeforeValidator(_named)]
_SEED = "Of the random numbers; equal seeds, equal results."


class TagRequest(_Given):
    """A text, or many texts, and how to tag them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": EXAMPLE},
                {"texts": [EXAMPLE, "Winam sails to Mbita."]},
                {
                    "text": EXAMPLE,
                    "backends": [
                        {"backend": "sum-product"},
                        {"backend": "viterbi", "links": False},
                        {"backend": "herded-gibbs", "options": {"n_sweeps": 400}},
                    ],
                    "seed": 1,
                },
            ]
        },
    )

    text: _Text | None = Field(None, description=_TEXT)
    texts: list[_Text] | None = Field(
        None,
        min_length=1,
        max_length=MOST_TEXTS,
        description="Several texts instead of one, each a document of its own; together they may have as many"
        " characters as one.",
    )
    backends: list[_Named] = Field(
        default_factory=lambda: [Choice.model_validate({})],
        min_length=1,
        max_length=MOST_BACKENDS,
        description="Ways to tag the text, each giving one result; a plain name stands for a backend by its defaults.",
    )
    seed: int = Field(0, ge=0, le=_LARGEST_SEED, description=_SEED)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.texts is None):
            raise ValueError("expected text, or texts: one of both")
        return self

    @property
    def characters(self) -> int:
        """Of all texts."""
        return sum(map(len, self.texts or [self.text or ""]))

    @property
    def cost(self) -> int:
        """Characters times sweeps."""
        return self.characters * sum(choice.sweeps for choice in self.backends)


class _OneText(_Given):
    text: _Text = Field(description=_TEXT)

    @property
    def characters(self) -> int:
        """Of the text."""
        return len(self.text)


class ExplainRequest(_OneText):
    """A name that was found in a text, and how the text was tagged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": EXAMPLE, "start": 70, "end": 76}]})

    start: int = Field(ge=0, description="Number of the name's first character, as `POST /api/tag` has it.")
    end: int = Field(ge=0, description="Number of the character behind its last one.")
    backend: _Named = Field(
        default_factory=lambda: Choice.model_validate({}), description="As one of `backends` of `POST /api/tag`."
    )
    against: str | None = Field(
        None, max_length=64, description='Compare with this label, or "best", the best other one; null is no name.'
    )
    seed: int = Field(0, ge=0, le=_LARGEST_SEED, description=_SEED)

    @property
    def cost(self) -> int:
        """As of a `TagRequest`."""
        return self.characters * self.backend.sweeps


class EntityGiven(BaseModel):
    """A name, as `POST /api/tag` gives it."""

    model_config = ConfigDict(extra="ignore", strict=True)

    start: int = Field(ge=0, description="Number of its first character.")
    end: int = Field(ge=0, description="Number of the character behind its last one.")
    label: str = Field(min_length=1, max_length=100, description="Its kind.")
    confidence: float | None = Field(None, ge=0, le=1, description="Its confidence, where it is known.")


class FileRequest(_OneText):
    """A text with its names, and the format of a file."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": EXAMPLE, "entities": [{"start": 70, "end": 76, "label": "LOC"}], "format": "conll"},
            ]
        },
    )

    entities: list[EntityGiven] = Field(max_length=MOST_ENTITIES, description="Its names, which do not overlap.")
    format: str = Field(max_length=32, description="One of `formats` of `GET /api/about`.")

    @property
    def cost(self) -> int:
        """As of a `TagRequest`; a file takes no sweeps."""
        return self.characters


class CharacterSpan(BaseModel):
    """A span of the text: characters (Unicode code points) from `start` up to, not including, `end`."""

    start: int = Field(description="Number of the first character, from 0.")
    end: int = Field(description="Number of the character behind the last one.")


class EntityFound(CharacterSpan):
    """A name."""

    label: str = Field(description="Its kind, such as PER, LOC or ORG.", examples=["ORG"])
    text: str = Field(description="The characters themselves.")
    confidence: float | None = Field(
        description="Probability that exactly these words carry this label, from 0 to 1.", examples=[0.93]
    )


class LinkFound(BaseModel):
    """A link: two words whose labels softly agree."""

    rule: str = Field(description="The rule that linked them.", examples=["same-word"])
    log_potential: float = Field(
        description="What the link adds to the log-potential, given the tags that the backend chose for both words:"
        " above 0 it speaks for them, below 0 they were chosen against it."
    )
    earlier: CharacterSpan = Field(description="The word that comes first in the text.")
    later: CharacterSpan = Field(description="The other word.")


class BackendAnswer(BaseModel):
    """What one backend made of the text."""

    backend: str | None = Field(description="As asked for.")
    options: Options = Field(description="As asked for.")
    linked: bool = Field(description="Whether mentions were linked.")
    seconds: float = Field(description="Time taken, without waiting.")
    entities: list[EntityFound] = Field(description="The names, in the order of the text; they do not overlap.")
    links: list[LinkFound] = Field(description="All links of the document, whether or not they touch a name.")


class Tagged(BaseModel):
    """A tagged text."""

    model: str = Field(description="The model's name.")
    n_characters: int = Field(description="Characters of the text.")
    n_tokens: int = Field(description="Words and signs that it was split into.")
    n_sentences: int = Field(description="Its sentences.")
    results: list[BackendAnswer] = Field(description="One for each of `backends`, in that order.")


class TaggedTexts(BaseModel):
    """Several texts, tagged."""

    documents: list[Tagged] = Field(description="One for each of `texts`, in that order.")


class PartFound(BaseModel):
    """What one thing adds to the log-odds of a name."""

    kind: str = Field(description="feature, transition, link or name (that the user knows).", examples=["link"])
    value: float | None = Field(description="Above 0 it speaks for the label; null is infinite.")
    words: str = Field(description="What it is.", examples=["the word before is 'at'"])
    token: str = Field(description="The word of the name that it is about, if the name has several; else empty.")


class Explained(CharacterSpan):
    """Why a name has its label: the log-odds against another reading, all else as it is tagged, and their parts."""

    text: str = Field(description="The characters themselves.")
    label: str = Field(description="Its kind.")
    sentence: int = Field(description="Number of its sentence, from 1.")
    against: str | None = Field(description="The label of the other reading; null is no name.")
    log_odds: float | None = Field(description="Natural logarithm of the odds, the sum of all parts; null is infinite.")
    confidence: float = Field(description="Probability that exactly these words carry this label, from 0 to 1.")
    confidence_without_links: float = Field(description="What it would be if mentions were not linked.")
    totals: dict[str, float | None] = Field(description="What all parts of a kind add.")
    parts: list[PartFound] = Field(description="All that differs between the two readings, largest first.")


class BackendAbout(BaseModel):
    """A backend that the service has."""

    name: str
    summary: str = Field(description="What it does, in a line.")
    links: bool = Field(description="Whether it takes linked mentions; if not, ask with `links` false.")
    options: list[str] = Field(description="Its options that a request may set.")


class LimitsAbout(BaseModel):
    """What a request may ask for."""

    characters: int = Field(description="Of a text.")
    body_bytes: int = Field(description="Of a request's body.")
    texts: int = Field(description="In one request.")
    backends: int = Field(description="Ways to tag in one request.")
    seconds: float = Field(description="Within which each request is answered, one way or the other.")
    workers: int = Field(description="Requests that are worked on at the same time.")


class About(BaseModel):
    """The model and the service."""

    version: str = Field(description="Of herdner.")
    model: str = Field(description="The model's name.")
    labels: list[str] = Field(description="Kinds of names that the model knows.")
    rules: list[str] = Field(description="Rules by which it links mentions.")
    chosen: list[str] = Field(description="The backends that the page begins with.")
    backends: list[BackendAbout]
    formats: list[str] = Field(description="Formats of files that `POST /api/file` writes.")
    limits: LimitsAbout


class Health(BaseModel):
    """That the service answers."""

    status: str = Field(description="ok", examples=["ok"])
    version: str = Field(description="Of herdner.")
    model: str = Field(description="The model's name.")


class Problem(BaseModel):
    """Why a request was not carried out."""

    detail: str = Field(description="One line, for people.")
