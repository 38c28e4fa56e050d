"""Known names: lists of labelled names and token patterns that raise the scores of their labels or fix the labels.

`Names` is such a list, `Finder` its compiled form for one model, and `Evidence` its effect on the scores of a document.
`CollectionNames` counts the names of a collection of documents.
"""

from herdner.ner.known_names.collection import CollectionNames as CollectionNames
from herdner.ner.known_names.evidence import Evidence as Evidence
from herdner.ner.known_names.finder import Finder as Finder
from herdner.ner.known_names.known import STRENGTH as STRENGTH
from herdner.ner.known_names.known import KnownName as KnownName
from herdner.ner.known_names.known import Names as Names
