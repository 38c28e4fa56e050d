"""Many documents on more than one machine, by Dask (``pip install herdner[dask]``).

`tag_files` turns files into files, part by part; `tag_bag` and `tag_frame` are lazy calls on a Dask bag or data frame.
"""

from __future__ import annotations

try:
    import dask.bag
    import dask.dataframe  # noqa: F401
    import distributed as _distributed  # noqa: F401
    import fsspec  # noqa: F401
    import pyarrow  # noqa: F401
except ImportError as error:
    raise ImportError(f"{error}: herdner.distributed needs pip install 'herdner[dask]'") from error

from herdner.distributed.cluster import ClusterError, cluster_client
from herdner.distributed.frames import tag_bag, tag_frame
from herdner.distributed.manifest import Manifest
from herdner.distributed.outputs import OutputError
from herdner.distributed.run import tag_files

__all__ = ["ClusterError", "Manifest", "OutputError", "cluster_client", "tag_bag", "tag_files", "tag_frame"]
