"""Use of herdner inside other libraries: spaCy, Dask, FastAPI, Hugging Face transformers and Presidio."""
