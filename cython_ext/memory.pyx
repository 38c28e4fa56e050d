# cython: language_level=3, boundscheck=True
"""Private and read-only copies of the arrays that loops read.

A loop that runs without the GIL reads only such copies, which are checked once: neither a caller nor another thread can
change them. Other modules use herdner/_ext/memory.pxd.
"""

import numpy as np

cimport cython
from cpython.buffer cimport PyBUF_FULL_RO, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t


cdef extern from *:
    """
    /* 1 if only the caller's stack refers to an argument, so that nobody can use it after the call. */
    static int is_temporary(PyObject *argument) {
    #if PY_VERSION_HEX >= 0x030E0000
        return PyUnstable_Object_IsUniqueReferencedTemporary(argument);
    #else
        return Py_REFCNT(argument) == 1;
    #endif
    }
    """
    bint is_temporary(object argument)


cdef class Memory:
    def __cinit__(self):
        self.view.buf = NULL
        self.forms = {}

    cdef int fill(self, array) except -1:
        """Take the memory of a contiguous array to which nobody else refers."""
        PyObject_GetBuffer(array, &self.view, PyBUF_FULL_RO)
        self.array = array
        return 0

    def __dealloc__(self):
        if self.array is not None:
            PyBuffer_Release(&self.view)

    cdef object to_array(self):
        """Return the memory as an array."""
        array = np.asarray(self)
        if array.dtype.hasobject:  # NumPy hides that no memory is left for the view
            raise MemoryError
        return array

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if flags & PyBUF_WRITABLE or self.array is None:
            raise BufferError("this memory is read-only")
        buffer.obj = self
        buffer.buf, buffer.len, buffer.itemsize = self.view.buf, self.view.len, self.view.itemsize
        buffer.ndim, buffer.format, buffer.shape = self.view.ndim, self.view.format, self.view.shape
        buffer.strides, buffer.suboffsets, buffer.internal = self.view.strides, NULL, NULL
        buffer.readonly = 1


@cython.always_allow_keywords(False)  # so that the interpreter lends its reference to the argument
def sealed(values):
    """Return the values of an array as a C-contiguous array to which nobody can write.

    They are copied, unless the array is the temporary result of an expression.
    """
    cdef Memory memory = Memory.__new__(Memory)
    cdef bint is_free = is_temporary(values) and type(values) is np.ndarray
    if is_free and values.base is None and values.flags.c_contiguous and values.flags.owndata:
        memory.fill(values)
    else:
        memory.fill(np.array(values, order="C", copy=True, subok=False))
    return memory.to_array()


cdef Memory memory_of(array):
    """Return the `Memory` of which an array is a view, or None."""
    cdef object base = array
    if type(array) is not np.ndarray:
        return None
    while isinstance(base, np.ndarray):
        base = base.base
    if type(base) is memoryview:
        base = base.obj
    return base if type(base) is Memory else None


def is_sealed(array not None):
    """Return True if an array is a view of a `Memory`."""
    return memory_of(array) is not None


cdef object view_of(array):
    """Return a new C-contiguous view of the memory of a sealed array.

    ``array.__setstate__`` releases the memory of an array, even if a loop uses it. So each object that keeps an array
    has a view of its own, to which Python code has no reference.
    """
    cdef Memory memory = memory_of(array)
    cdef Py_buffer view
    cdef int k
    PyObject_GetBuffer(array, &view, PyBUF_FULL_RO)
    try:
        shape, offset = tuple([view.shape[k] for k in range(view.ndim)]), <char*> view.buf - <char*> memory.view.buf
    finally:
        PyBuffer_Release(&view)
    return np.ndarray(shape, array.dtype, memory, offset)


cdef object own(value, dtype, int n_axes, str name):
    """Return the values as a C-contiguous array that nobody can write to; they are copied unless they are sealed.

    The array must not be returned to Python code, only a `view_of` it.
    """
    cdef Memory memory
    array = np.asarray(value)
    kind = array.dtype
    if not (kind.type is dtype and kind.isnative or kind == dtype) or array.ndim != n_axes:
        raise ValueError(f"{name} must be an array of {np.dtype(dtype)} with {n_axes} axes, got {array.dtype} with"
                         f" {array.ndim} axes")
    if memory_of(array) is not None and array.flags.c_contiguous and kind.isnative:
        return view_of(array)
    memory = Memory.__new__(Memory)
    memory.fill(array.copy())
    return memory.to_array()


cdef int require(bint valid, str fault) except -1:
    """Raise ValueError unless ``valid``."""
    if not valid:
        raise ValueError(fault)
    return 0


cdef int require_offsets(object offsets, Py_ssize_t end, str name) except -1:
    """Raise ValueError unless int64 ``offsets`` rise from 0 to ``end``."""
    cdef const int64_t[::1] borders = offsets
    cdef Py_ssize_t s
    if not (borders.shape[0] > 0 and borders[0] == 0 and borders[borders.shape[0] - 1] == end):
        raise ValueError(f"{name} must run from 0 to {end}")
    for s in range(1, borders.shape[0]):
        if borders[s - 1] > borders[s]:
            raise ValueError(f"{name} must not decrease")
    return 0
