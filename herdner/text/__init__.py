"""Text as the tagger sees it: documents, tags, tokens, sentences, and the files they come from."""
