"""Tagging of batches: texts and documents in, tagged documents and failures out."""

from __future__ import annotations

from dataclasses import dataclass

from herdner.base.seeds import child
from herdner.inference import Backend
from herdner.ner.decode import Decoder
from herdner.ner.known_names import Finder
from herdner.ner.streams import Batch
from herdner.text.document import Document, Failure
from herdner.text.tokenize import Tokenizer, with_tokens


@dataclass(frozen=True, eq=False)
class BatchTagger:
    """All that the batches of a stream have in common. Threads may share it.

    Attributes:
        finder: Of names that the user knows, where there are any.
        backend: None tags the documents of a batch together (`Decoder.tagged`).
        seed: Document i of the stream draws from its i-th child.
    """

    decoder: Decoder
    tokenizer: Tokenizer
    finder: Finder | None
    backend: Backend | None
    seed: int | None

    def __call__(self, batch: Batch) -> list[Document | Failure]:
        """Each document with its tags, or as the failure that it became: one alone fails, not its neighbours."""
        first, sources, failure = batch
        if failure is not None:
            return [failure]
        try:
            cut = iter(self.tokenizer.together([source for source in sources if isinstance(source, str)]))
            documents = [next(cut) if isinstance(each, str) else with_tokens(each, self.tokenizer) for each in sources]
            known = ()
            if self.finder is not None:
                pairs = zip(documents, sources, strict=True)
                known = [self.finder(document, own_tokens=document is not source) for document, source in pairs]
            rng = child(self.seed, first)
            return [*self.decoder.tagged(documents, self.backend, rng, known)]
        except (ValueError, MemoryError) as error:
            if len(sources) == 1:
                return [Failure(error, first, sources[0])]
        alone = (Batch(number, [source]) for number, source in enumerate(sources, first))
        return [result for each in alone for result in self(each)]
