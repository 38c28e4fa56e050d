"""Set before NumPy is imported: the tests' matrices are so small that threads of BLAS only wait for each other."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
