"""A local page that tags a text by several backends side by side, and the JSON service behind it (FastAPI).

`create_app` makes the application; ``herdner serve`` runs it.
"""

from herdner.integrations.serve.app import create_app as create_app
from herdner.integrations.serve.limits import Limits as Limits
