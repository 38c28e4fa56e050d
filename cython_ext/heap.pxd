# A binary heap of indices, which can be moved and removed: the smallest key first, then the smallest index.

from libc.stdint cimport int32_t


cdef struct Heap:
    int32_t* items  # [size]
    int32_t* place  # [n]: place of an index in `items`, -1 if it is not there
    double* key     # [n]
    Py_ssize_t size


cdef inline bint is_before(const Heap* h, int32_t a, int32_t b) noexcept nogil:
    return h.key[a] < h.key[b] or h.key[a] == h.key[b] and a < b


cdef inline void put(Heap* h, Py_ssize_t at, int32_t item) noexcept nogil:
    h.items[at] = item
    h.place[item] = <int32_t> at


cdef inline void move_up(Heap* h, int32_t item) noexcept nogil:
    """Restore the order after the key of an item became smaller."""
    cdef Py_ssize_t at = h.place[item], above
    while at > 0:
        above = (at - 1) >> 1
        if not is_before(h, item, h.items[above]):
            break
        put(h, at, h.items[above])
        at = above
    put(h, at, item)


cdef inline void move_down(Heap* h, int32_t item) noexcept nogil:
    """Restore the order after the key of an item became larger."""
    cdef Py_ssize_t at = h.place[item], below
    while True:
        below = 2 * at + 1
        if below >= h.size:
            break
        if below + 1 < h.size and is_before(h, h.items[below + 1], h.items[below]):
            below += 1
        if not is_before(h, h.items[below], item):
            break
        put(h, at, h.items[below])
        at = below
    put(h, at, item)


cdef inline void set_key(Heap* h, int32_t item, double key) noexcept nogil:
    """Set the key of an item; add the item if it is not in the heap."""
    h.key[item] = key
    if h.place[item] < 0:
        h.size += 1
        put(h, h.size - 1, item)
    move_up(h, item)
    move_down(h, item)


cdef inline void remove_item(Heap* h, int32_t item) noexcept nogil:
    cdef Py_ssize_t at = h.place[item]
    cdef int32_t moved
    h.place[item] = -1
    h.size -= 1
    if at == h.size:
        return
    moved = h.items[h.size]
    put(h, at, moved)
    move_up(h, moved)
    move_down(h, moved)
