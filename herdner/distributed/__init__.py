"""Many documents on more than one machine, by Dask (``pip install herdner[dask]``).

`tag_files` turns files into files, part by part; `tag_bag` and `tag_frame` are lazy calls on a Dask bag or data frame.
"""

from __future__ import annotations

try:
    from herdner.distributed.cluster import ClusterError, cluster_client
    from herdner.distributed.frames import tag_bag, tag_frame
    from herdner.distributed.manifest import Manifest
    from herdner.distributed.outputs import OutputError
    from herdner.distributed.run import tag_files
except ImportError as error:  # Dask, fsspec or pyarrow
    raise ImportError(f"{error}: herdner.distributed needs pip install 'herdner[dask]'") from error

__all__ = ["ClusterError", "Manifest", "OutputError", "cluster_client", "tag_bag", "tag_files", "tag_frame"]
