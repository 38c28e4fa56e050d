# cython: language_level=3, boundscheck=True
"""Private and read-only copies of the arrays that loops read.

A loop that runs without the GIL reads only such copies, which are checked once: neither a caller nor another thread can
change them. Other modules use herdner/_ext/memory.pxd.
"""

from weakref import getweakrefcount

import numpy as np

cimport cython
from cpython.buffer cimport (
    PyBUF_FULL_RO, PyBUF_WRITABLE, PyBuffer_IsContiguous, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_REFCNT
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy


cdef enum:
    SHARED_FROM = 1 << 14  # bytes from which a view of sealed memory takes less time than a copy


@cython.no_gc  # so that `gc.get_referents` does not return the array behind it; no cycle contains it
cdef class Memory:
    def __cinit__(self):
        self.view.buf = self.data = NULL
        self.forms = {}

    cdef int fill(self, array) except -1:
        """Take the memory of an array to which nobody else refers."""
        PyObject_GetBuffer(array, &self.view, PyBUF_FULL_RO)
        self.array = array
        return 0

    cdef int copy(self, const Py_buffer* source) except -1:
        """Copy a C-contiguous buffer of at most three axes with one of the formats of `FORMATS`."""
        cdef Py_ssize_t stride = source.itemsize
        cdef int k
        self.data = <char*> PyMem_Malloc(max(source.len, 1))
        if self.data == NULL:
            raise MemoryError(f"no memory for a copy of {source.len} bytes")
        memcpy(self.data, source.buf, source.len)
        for k in range(source.ndim - 1, -1, -1):
            self.sizes[k], self.sizes[3 + k] = source.shape[k], stride
            stride *= source.shape[k]
        self.view.buf, self.view.len, self.view.itemsize = self.data, source.len, source.itemsize
        self.format[0], self.format[1] = source.format[0], 0
        self.view.ndim, self.view.format = source.ndim, self.format
        self.view.shape, self.view.strides = self.sizes, self.sizes + 3
        return 0

    def __dealloc__(self):
        if self.array is not None:
            PyBuffer_Release(&self.view)
        PyMem_Free(self.data)

    def __len__(self):
        if self.view.ndim == 0:  # of a scalar, or not filled
            raise TypeError("this memory has no axes")
        return self.view.shape[0]

    cdef object to_array(self):
        """Return a view of the memory, which must be C-contiguous.

        Its base is the `Memory` itself: an intermediate `memoryview` could be released from Python.
        """
        return np.ndarray(self.array.shape, self.array.dtype, self)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if flags & PyBUF_WRITABLE or self.view.buf == NULL:
            raise BufferError("this memory is read-only")
        buffer.obj = self
        buffer.buf, buffer.len, buffer.itemsize = self.view.buf, self.view.len, self.view.itemsize
        buffer.ndim, buffer.format, buffer.shape = self.view.ndim, self.view.format, self.view.shape
        buffer.strides, buffer.suboffsets, buffer.internal = self.view.strides, NULL, NULL
        buffer.readonly = 1


def sealed(list values not None):
    """Return an array, the only item of a list, as a C-contiguous array to which nobody can write.

    The item is removed from the list. Its memory is taken if nothing else refers to it: ``sealed([np.zeros(3)])``.
    Otherwise the values are copied.
    """
    cdef Memory memory = Memory.__new__(Memory)
    require(len(values) == 1, "a list of one array is needed")
    array = values.pop()
    if (Py_REFCNT(array) == 1 and type(array) is np.ndarray and not getweakrefcount(array) and array.base is None
            and array.flags.c_contiguous and array.flags.owndata):
        memory.fill(array)
    else:
        memory.fill(np.array(array, order="C", copy=True, subok=False))
    return memory.to_array()


cdef Memory memory_of(array):
    """Return the `Memory` of which an array is a view, or None."""
    cdef object base = array
    while type(base) is np.ndarray:  # a subclass could have another attribute `base`
        base = base.base
    return base if type(base) is Memory else None


def is_sealed(array not None):
    """Return True if an array is a view of a `Memory`."""
    return memory_of(array) is not None


cdef object view_of(array):
    """Return a new view of the memory of a sealed array, or None if the array is not sealed.

    ``array.__setstate__`` releases the memory of an array, even if a loop uses it. So each object that keeps an array
    has a view of its own, to which Python code has no reference.
    """
    cdef Memory memory = memory_of(array)
    cdef Py_buffer view
    cdef int k
    if memory is None:
        return None
    PyObject_GetBuffer(array, &view, PyBUF_FULL_RO)
    try:
        shape, strides = [view.shape[k] for k in range(view.ndim)], [view.strides[k] for k in range(view.ndim)]
        offset = <char*> view.buf - <char*> memory.view.buf
    finally:
        PyBuffer_Release(&view)
    return np.ndarray(shape, array.dtype, memory, offset, strides)


cdef object own(value, dtype, int n_axes, str name, bint strided=False):
    """Return the values as an array that nobody can write to; they are copied unless they are sealed.

    The array is C-contiguous, unless it is ``strided``. It must not be returned to Python code.
    """
    cdef Memory memory
    array = np.asarray(value)
    kind = array.dtype
    if not (kind.type is dtype and kind.isnative or kind == dtype) or array.ndim != n_axes:
        raise ValueError(f"{name} must be an array of {np.dtype(dtype)} with {n_axes} axes, got {array.dtype} with"
                         f" {array.ndim} axes")
    if strided or array.flags.c_contiguous:
        view = view_of(array)
        if view is not None:
            return view
    memory = Memory.__new__(Memory)
    memory.fill(array.copy())
    return memory.to_array()


# The type of elements of each format of a buffer.
cdef dict FORMATS = {
    ord(np.dtype(each).char): each
    for each in (np.float64, np.float32, np.int64, np.int32, np.uint64, np.uint8, np.bool_)
}


cdef bint fits(const Py_buffer* view, dtype, int n_axes) except -1:
    """Return True if a buffer is C-contiguous and has elements of a type of NumPy and as many axes."""
    if view.ndim != n_axes or view.format == NULL or view.format[0] == 0 or view.format[1] != 0:
        return False
    return FORMATS.get(view.format[0]) is dtype and PyBuffer_IsContiguous(view, c"C")


cdef bint is_whole(Memory memory, const Py_buffer* view) noexcept:
    """Return True if a C-contiguous buffer has all elements of a memory, in the same axes."""
    cdef int k
    if view.buf != memory.view.buf or view.len != memory.view.len or view.ndim != memory.view.ndim:
        return False
    for k in range(view.ndim):
        if view.shape[k] != memory.view.shape[k]:
            return False
    return view.itemsize == memory.view.itemsize


cdef Memory owned(value, dtype, int n_axes, str name):
    """Return the values as a `Memory` for a typed memoryview of at most three axes.

    They are copied unless they are a whole sealed array, or a large part of one. It does the same as `own`, but makes
    no array, which would take most of the time.
    """
    cdef Memory memory
    cdef Py_buffer view
    if type(value) is Memory:
        memory = value
        if fits(&memory.view, dtype, n_axes):
            return memory
    elif type(value) is np.ndarray:
        PyObject_GetBuffer(value, &view, PyBUF_FULL_RO)
        try:
            if fits(&view, dtype, n_axes):
                base = value.base
                if type(base) is Memory and is_whole(base, &view):
                    return base
                if view.len < SHARED_FROM or memory_of(value) is None:
                    memory = Memory.__new__(Memory)
                    memory.copy(&view)
                    return memory
        finally:
            PyBuffer_Release(&view)
    return memory_behind(own(value, dtype, n_axes, name))


cdef Memory memory_behind(array):
    """Return a `Memory` with the elements of an array of `own`, or None for None; Python may see the `Memory`."""
    cdef Memory source = memory_of(array), memory
    if array is None:
        return None
    memory = Memory.__new__(Memory)
    memory.fill(array)
    if source.view.buf == memory.view.buf and (source.array.shape, source.array.dtype) == (array.shape, array.dtype):
        return source  # so that copies of copies do not become a chain
    return memory


cdef int require(bint valid, str fault) except -1:
    """Raise ValueError unless ``valid``."""
    if not valid:
        raise ValueError(fault)
    return 0


@cython.boundscheck(False)
cdef int require_range(const int32_t[:] values, int64_t first, int64_t end, str fault) except -1:
    """Raise ValueError unless all values are from ``first`` to ``end`` - 1."""
    cdef Py_ssize_t i
    cdef bint is_inside = True
    for i in range(values.shape[0]):
        is_inside &= first <= values[i] < end
    return require(is_inside, fault)


cdef int require_offsets(object offsets, Py_ssize_t end, str name) except -1:
    """Raise ValueError unless int64 ``offsets`` rise from 0 to ``end``."""
    cdef Memory memory = owned(offsets, np.int64, 1, name)
    cdef const int64_t* borders = <const int64_t*> memory.view.buf
    cdef Py_ssize_t n = memory.view.shape[0], s
    if not (n > 0 and borders[0] == 0 and borders[n - 1] == end):
        raise ValueError(f"{name} must run from 0 to {end}")
    for s in range(1, n):
        if borders[s - 1] > borders[s]:
            raise ValueError(f"{name} must not decrease")
    return 0
