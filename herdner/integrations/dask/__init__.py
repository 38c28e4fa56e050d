"""Tagging of many documents on several processes or machines, by Dask (``pip install '.[dask]'``).

`tag_files` tags files and writes a folder of parts. `tag_bag` and `tag_frame` tag a Dask bag or data frame lazily.
"""

from __future__ import annotations

from herdner.base.extras import MissingExtra, install_advice

try:
    from herdner.integrations.dask.cluster import ClusterError, cluster_client
    from herdner.integrations.dask.files import OutputError
    from herdner.integrations.dask.frames import tag_bag, tag_frame
    from herdner.integrations.dask.manifest import Manifest
    from herdner.integrations.dask.run import tag_files
except ImportError as error:  # Dask, fsspec or pyarrow
    raise MissingExtra(f"{error}: {install_advice('dask')}") from error

__all__ = ["ClusterError", "Manifest", "OutputError", "cluster_client", "tag_bag", "tag_files", "tag_frame"]
