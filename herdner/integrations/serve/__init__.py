"""A local web page that compares backends on a text, and the JSON service behind it (FastAPI).

`create_app` builds the application; ``herdner serve`` runs it.
"""

from herdner.integrations.serve.app import create_app as create_app
from herdner.integrations.serve.pool import Limits as Limits
