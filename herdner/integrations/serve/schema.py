"""Requests and responses of the service, as OpenAPI describes them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from typing_extensions import Self

from herdner.integrations.serve.costs import TEXT_SECONDS, file_seconds, tagging_seconds

MAX_BACKENDS = 8
MAX_TEXTS = 1000
MAX_ENTITIES = 100_000
MAX_SWEEPS = 100_000
_MAX_SEED = 2**53 - 1  # the largest integer that JavaScript represents exactly

EXAMPLE = "Winam Ferries lost in court. Winam will pay, said Charlotte Akinyi in Kisumu."


class RequestModel(BaseModel):
    """Base class of requests, which accept only known fields and values of the declared types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class BackendOptions(RequestModel):
    """Options of a backend that affect the result; options for memory and threads are excluded.

    `GET /api/about` lists the options of each backend. Omitted options have the backend's defaults.
    """

    n_sweeps: int | None = Field(None, ge=1, le=MAX_SWEEPS, description="Number of sweeps over the document.")
    burn_in: int | None = Field(None, ge=0, le=MAX_SWEEPS, description="Number of first sweeps that are discarded.")
    n_bins: int | None = Field(
        None, ge=1, le=65_536, description="Number of bins of conditional probabilities (dhg, circular-dhg, rdhg)."
    )
    error_bound: float | None = Field(
        None, ge=0, description="Herd if the largest weight exceeds this value, else draw at random (bounded-error)."
    )
    sharing: str | None = Field(None, max_length=64, description='Sharing of herding weights, as in "bins(64)".')
    scan: str | None = Field(None, max_length=64, description='Order of updates, as in "checkerboard".')
    annealing: str | None = Field(None, max_length=64, description='Inverse temperatures, as in "linear(0.1, 4)".')
    form: str | None = Field(None, max_length=64, description='"circular" or "threshold" herding.')
    damping: float | None = Field(None, gt=0, le=1, description="Damping of messages; 1 is undamped.")
    tolerance: float | None = Field(None, ge=0, description="Change of messages that counts as convergence.")


OPTIONS = tuple(BackendOptions.model_fields)


class BackendChoice(RequestModel):
    """Name and options of a backend, and the choice to tag with or without links."""

    backend: str | None = Field(
        None, max_length=64, description="Name of an inference backend; null: the model's default.", examples=["gibbs"]
    )
    options: BackendOptions = Field(
        default_factory=lambda: BackendOptions.model_validate({}), description="Options of this backend."
    )
    links: bool | None = Field(
        None, description="Whether the mentions of a name are linked; null: the model's default. viterbi needs false."
    )

    def seconds(self, n_characters: int) -> float:
        """Estimate the time in which the backend tags a text.

        Args:
            n_characters: Length of the text.

        Returns:
            Time in seconds.
        """
        set_options = {name for name, value in self.options if value is not None}
        has_options = bool(set_options - {"n_sweeps"})
        return tagging_seconds(n_characters, self.backend, self.options.n_sweeps, has_options=has_options)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON can represent but UTF-8 cannot, by U+FFFD."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _from_name(value: Any) -> Any:
    return {"backend": value} if isinstance(value, str) else value


_Text = Annotated[str, AfterValidator(_replace_surrogates)]
_TEXT = "The text; `GET /api/about` states its maximum length."
_ChoiceOrName = Annotated[BackendChoice, BeforeValidator(_from_name)]
_Seed = Annotated[int, Field(ge=0, le=_MAX_SEED, description="Seed of the random numbers.")]
_Start = Annotated[int, Field(ge=0, description="Offset of the first character, from 0.")]
_End = Annotated[int, Field(ge=0, description="Offset behind the last character.")]


class TagRequest(RequestModel):
    """Request to tag one or several texts with one or more backends."""

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
        max_length=MAX_TEXTS,
        description="Several texts instead of one; each is a document. The limit of characters applies to their sum.",
    )
    backends: list[_ChoiceOrName] = Field(
        default_factory=lambda: [BackendChoice.model_validate({})],
        min_length=1,
        max_length=MAX_BACKENDS,
        description="Backends; each yields one result. A name stands for a backend with its defaults.",
    )
    seed: _Seed = 0

    @model_validator(mode="after")
    def _check_texts(self) -> Self:
        if (self.text is None) == (self.texts is None):
            raise ValueError(
                "the request must contain either the key 'text' or the key 'texts', but has"
                f" {'neither' if self.text is None else 'both'}"
            )
        return self

    @property
    def characters(self) -> int:
        """Number of characters of all texts in the request."""
        return sum(map(len, self.texts or [self.text or ""]))

    @property
    def cost(self) -> float:
        """Estimated processing time of the request in seconds (`herdner.integrations.serve.costs`)."""
        n_texts = len(self.texts or [self.text])
        return sum(n_texts * TEXT_SECONDS + choice.seconds(self.characters) for choice in self.backends)


class _OneText(RequestModel):
    text: _Text = Field(description=_TEXT)

    @property
    def characters(self) -> int:
        """Number of characters of the text in the request."""
        return len(self.text)


class ExplainRequest(_OneText):
    """Request to explain the label that a backend has given to an entity of a text."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": EXAMPLE, "start": 70, "end": 76}]})

    start: _Start
    end: _End
    backend: _ChoiceOrName = Field(
        default_factory=lambda: BackendChoice.model_validate({}), description="As in `POST /api/tag`."
    )
    against: str | None = Field(
        None, max_length=64, description='Label to compare with; "best": the best other label; null: not an entity.'
    )
    seed: _Seed = 0

    @property
    def cost(self) -> float:
        """Estimated processing time of the request in seconds, about twice the time of tagging."""
        return TEXT_SECONDS + 2 * self.backend.seconds(self.characters)


class RequestEntity(BaseModel):
    """Entity in a request, with the fields of the entities that `POST /api/tag` returns."""

    model_config = ConfigDict(extra="ignore", strict=True)

    start: _Start
    end: _End
    label: str = Field(min_length=1, max_length=100, description="The label.")
    confidence: float | None = Field(None, ge=0, le=1, description="The confidence, if known.")
    name_id: int | None = Field(None, ge=0, le=MAX_ENTITIES, description="The number of the name, if known.")


class FileRequest(_OneText):
    """Request to write a text with its entities as a file in some format."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": EXAMPLE, "entities": [{"start": 70, "end": 76, "label": "LOC"}], "format": "conll"}]
        }
    )

    entities: list[RequestEntity] = Field(max_length=MAX_ENTITIES, description="The entities; they must not overlap.")
    format: str = Field(max_length=32, description="One of `formats` of `GET /api/about`.")

    @property
    def cost(self) -> float:
        """Estimated processing time of the request in seconds."""
        return TEXT_SECONDS + file_seconds(self.characters, self.format)


class CharacterSpan(BaseModel):
    """Span of a text, in characters (Unicode code points)."""

    start: int = Field(description="Offset of the first character, from 0.")
    end: int = Field(description="Offset behind the last character.")


class TaggedEntity(CharacterSpan):
    """Entity that a backend has found in a text."""

    label: str = Field(description="The label, such as PER, LOC or ORG.", examples=["ORG"])
    text: str = Field(description="The characters.")
    confidence: float | None = Field(
        description="Probability from 0 to 1 that span and label are right.", examples=[0.93]
    )
    name_id: int | None = Field(description="Number of the name, which all its mentions share.", examples=[0])


class TaggedLink(BaseModel):
    """Link between two tokens of a text."""

    rule: str = Field(description="Rule that links them.", examples=["same-word"])
    log_potential: float = Field(
        description="Log-potential of the link for the chosen tags of both tokens. If it is negative, the link"
        " contradicts these tags."
    )
    earlier: CharacterSpan = Field(description="The token that is first in the text.")
    later: CharacterSpan = Field(description="The other token.")


class BackendResult(BaseModel):
    """Entities and links that one backend has found in a text."""

    backend: str | None = Field(description="As in the request.")
    options: BackendOptions = Field(description="As in the request.")
    linked: bool = Field(description="Whether mentions were linked.")
    seconds: float = Field(description="Computing time, without waiting.")
    entities: list[TaggedEntity] = Field(description="Entities in the order of the text; they do not overlap.")
    links: list[TaggedLink] = Field(description="All links of the document, including those outside entities.")


class TagResponse(BaseModel):
    """Response to a request with one text: the size of the text, and the entities and links of each backend."""

    model: str = Field(description="Name of the model.")
    n_characters: int = Field(description="Number of characters.")
    n_tokens: int = Field(description="Number of tokens.")
    n_sentences: int = Field(description="Number of sentences.")
    results: list[BackendResult] = Field(description="One for each of `backends`, in their order.")
    warnings: list[str] = Field(
        description="Warnings, such as that the text is in another language than that of the model."
    )


class TextsResponse(BaseModel):
    """Response to a request with several texts: the tagged texts."""

    documents: list[TagResponse] = Field(description="One for each of `texts`, in their order.")


class ExplainedPart(BaseModel):
    """Term of the log-odds of an entity, such as the weight of a feature or a link."""

    kind: str = Field(description="feature, network, transition, link or name (a known name).", examples=["link"])
    value: float | None = Field(description="The term; positive values support the label. null: infinite.")
    words: str = Field(description="Description of the term in words.", examples=["the word before is 'at'"])
    token: str = Field(
        description="The token of the entity to which the term applies; empty if the entity has only one token."
    )


class ConfidenceStepResponse(BaseModel):
    """Step of the computation that turns the model's probability of an entity into its confidence."""

    name: str = Field(description="model, links, calibration or full name.", examples=["links"])
    log_odds: float | None = Field(description="Change of the log-odds of the probability. null: infinite.")
    probability: float = Field(description="The probability after the step.")


class ExplainResponse(CharacterSpan):
    """Log-odds of the label of an entity against another label, and the terms that add up to the log-odds."""

    text: str = Field(description="The characters.")
    label: str = Field(description="The label.")
    sentence: int = Field(description="Number of the sentence, from 1.")
    against: str | None = Field(description="The other label; null: not an entity.")
    log_odds: float | None = Field(description="Natural logarithm of the odds: the sum of all parts. null: infinite.")
    confidence: float = Field(description="Probability from 0 to 1 that span and label are right.")
    confidence_without_links: float = Field(description="The confidence if mentions were not linked.")
    confidence_steps: list[ConfidenceStepResponse] = Field(
        description="The steps from the model's probability to the confidence; their log-odds add up."
    )
    totals: dict[str, float | None] = Field(description="Sum of the parts of each kind.")
    parts: list[ExplainedPart] = Field(description="All terms in which the two labels differ, largest first.")


class BackendInfo(BaseModel):
    """Name and description of a backend."""

    name: str
    summary: str = Field(description="Description in one line.")
    links: bool = Field(description="Whether it supports links; otherwise set `links` to false.")
    options: list[str] = Field(description="Options that a request may set.")


class LimitsInfo(BaseModel):
    """Limits that the service sets for a request."""

    characters: int = Field(description="Characters of a text.")
    body_bytes: int = Field(description="Bytes of a body.")
    texts: int = Field(description="Texts of a request.")
    backends: int = Field(description="Backends of a request.")
    seconds: float = Field(description="Time limit in seconds, including waiting.")
    workers: int = Field(description="Requests that are processed at the same time.")


class ServiceInfo(BaseModel):
    """Description of the model and of the service."""

    version: str = Field(description="Version of herdner.")
    model: str = Field(description="Name of the model.")
    labels: list[str] = Field(description="Labels of the model.")
    rules: list[str] = Field(description="Rules by which the model links mentions.")
    default_backends: list[str] = Field(description="Backends that are selected when the page opens.")
    backends: list[BackendInfo]
    formats: list[str] = Field(description="File formats of `POST /api/file`.")
    limits: LimitsInfo


class Health(BaseModel):
    """State of the service: whether it is ready for requests."""

    status: str = Field(description="ok", examples=["ok"])
    version: str = Field(description="Version of herdner.")
    model: str = Field(description="Name of the model.")


class ErrorResponse(BaseModel):
    """Response to a request that has failed, with the reason."""

    detail: str = Field(description="Message of one line.")
