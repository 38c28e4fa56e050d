"""Names that the user knows: lists and patterns that speak for a label where they occur, or settle it.

`Names` is the list, `Finder` what a tagger makes of it, `Evidence` what it adds to the scores of a document.
"""

from herdner.ner.known_names.evidence import Evidence as Evidence
from herdner.ner.known_names.finder import Finder as Finder
from herdner.ner.known_names.known import STRENGTH as STRENGTH
from herdner.ner.known_names.known import Known as Known
from herdner.ner.known_names.known import Names as Names
