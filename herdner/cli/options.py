"""Options of several commands. An option has the same name, type and help everywhere."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

MAX_RESAMPLES = 10_000_000

# --- models and inference

# fmt: off
ModelOption = Annotated[str, typer.Option("--model", "-m", help="Name of a shipped model, or path of a model file.")]
BackendOption = Annotated[str | None, typer.Option(
    "--backend", "-b", help="Inference backend (see `herdner backends`) [default: the model's].")]
SetOption = Annotated[list[str] | None, typer.Option(
    "--set", metavar="KEY=VALUE", help="Option of the backend; may be repeated. links=false ignores the links between "
    "mentions.")]
BackendSetOption = Annotated[list[str] | None, typer.Option(
    "--set", metavar="KEY=VALUE", help="Option of the backend; may be repeated.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Random seed. Equal seeds give equal results.")]

# --- known names

NamesOption = Annotated[str | None, typer.Option(
    "--names", metavar="FILE", help="File of known names: lines with a name, a tab and a label, or JSON lines of "
    "spaCy's entity ruler.")]
StrengthOption = Annotated[float | None, typer.Option(
    "--names-strength", help="Log-odds that a name of --names adds to each of its tokens [default: 3].")]
HardOption = Annotated[bool, typer.Option(
    "--names-hard", help="Tag every name of --names in any context, longer names first. A longer name that the model "
    "finds stays whole.")]
FoldCaseOption = Annotated[bool, typer.Option(
    "--names-fold-case", help="Ignore upper and lower case when finding names of --names.")]

# --- input files

FilesArgument = Annotated[list[str] | None, typer.Argument(
    metavar="FILE", help="Files or folders; - (or no FILE in a pipe) is standard input. FILE:FORMAT states the "
    "format, as in notes.log:text.")]
InputOption = Annotated[str | None, typer.Option(
    "--input", "-i", metavar="FORMAT", help="Format of each FILE without :FORMAT: text, jsonl, conll, ... [default: by "
    "file extension].")]
PatternOption = Annotated[list[str] | None, typer.Option(
    "--pattern", metavar="GLOB", help="Files of a folder to read, as in '*.log'; may be repeated [default: files with "
    "a known extension]. Hidden files are never read.")]
ErrorsOption = Annotated[Literal["skip", "replace", "fail"] | None, typer.Option(
    "--errors", metavar="skip|replace|fail", help="Treatment of documents that cannot be read or tagged. skip: leave "
    "them out. replace: also replace undecodable bytes by U+FFFD. fail: stop at the first such document and write no "
    "--output [default: skip, but write no --output if a file is truncated].")]
ColumnOption = Annotated[str, typer.Option(
    "--column", help="Column of CSV, TSV and Parquet files that contains the texts.")]
IdColumnOption = Annotated[str | None, typer.Option(
    "--id-column", help="Column of CSV, TSV and Parquet files that contains the ids [default: id, if there is one].")]
DelimiterOption = Annotated[str | None, typer.Option(
    "--delimiter", metavar="CHARACTER", help="Separator of columns in CSV and TSV files, or the word tab [default: "
    "detected in the first row; TAB for TSV].")]
EncodingOption = Annotated[str, typer.Option("--encoding", help="Encoding of the input files.")]
StrictOption = Annotated[bool, typer.Option(
    "--strict", help="Refuse dubious input, such as overlapping entities [default: print a warning and use the most "
    "plausible reading].")]

# --- labels and scores

RenameLabelsOption = Annotated[bool, typer.Option(
    "--rename-labels", help="Rename the labels of known corpora to PER, LOC and ORG; drop others.")]
RenameOption = Annotated[list[str] | None, typer.Option(
    "--rename", metavar="OLD=NEW", help="Rename a label; OLD= drops it. May be repeated.")]
UnitOption = Annotated[Literal["document", "sentence"] | None, typer.Option(
    "--unit", help="Unit of resampling [default: document, if there are at least two documents].")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
# fmt: on
