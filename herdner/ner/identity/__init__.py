"""Identity of names: a learned model decides which mentions in a document belong to the same name.

`forms` parses the text of a mention into titles and words, and `clusters` assigns each mention to the best name or to a
new one. `short_forms` gives a short form the label of its full name.
"""

from herdner.ner.identity.clusters import with_names as with_names
from herdner.ner.identity.short_forms import assign_name_ids as assign_name_ids
from herdner.ner.identity.short_forms import relabel_short_forms as relabel_short_forms
