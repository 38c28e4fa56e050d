"""Fuzz targets by name: functions of a random generator that return, or raise an exception with a clear message."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fuzz import calls, documents, files, graphs, headers, loaders, outside, public, readers

TARGETS: Mapping[str, Callable[[np.random.Generator], object]] = {
    "graphs": graphs.infer,
    "chains": documents.chains,
    "rules": documents.rules,
    "layer": documents.layer,
    "documents": documents.places,
    "calls": calls.calls,
    "public": public.hostile_call,
    "compiled": public.compiled,
    "odd-words": calls.rows,
    "taggers": calls.tags,
    "models": files.models,
    "layers": files.layers,
    "graph-files": files.graph_files,
    "readers": readers.readers,
    "sealed": files.sealed,
    "loaders": loaders.loaders,
    "headers": headers.headers,
    "images": outside.images,
    "manifests": outside.manifests,
    "scans": outside.scans,
    "tables": outside.tables,
    "requests": outside.requests,
    "spacy": outside.spacy,
}
