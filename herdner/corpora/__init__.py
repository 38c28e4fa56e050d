"""Registry of corpora, download of their files, and all file formats."""
