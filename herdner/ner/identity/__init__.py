"""Identity of names: a learned model decides which mentions in a document belong to the same name.

`forms` parses the text of a mention into titles and words, `features` compares a mention with the mentions of a name,
and `clusters` assigns each mention to the best name or to a new one.
"""

from herdner.ner.identity.clusters import with_names as with_names
