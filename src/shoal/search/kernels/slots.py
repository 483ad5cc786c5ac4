"""Classes whose members have room to move: what the local searches over finished classes share.
Eight neighbouring int32 of an array are read as one value that fits a vector register.

Losses are whole numbers, so that a search makes the same moves on every machine: an attribute's
whole width is about 65,536. Linear attributes come first, as positions, and are padded with zeros;
hierarchies follow, as the ranks of the leaves that occur, padded as well.

shape: (4 + 2 * trees,) int64: k, the slots of a class, linear columns, trees; then, for every tree,
    where its losses begin in `table`, and its leaves, negative where the table is sparse.
table: int32. For a tree of few leaves the loss of every pair of leaves, row by row. A sparse table
    has the whole logarithm of 0..leaves-1, then the greatest loss between neighbours among the 1,
    2, 4, ... pairs of neighbours from each leaf on: the loss of a span is the greatest within it.
random: (1,) uint64, the state of xorshift64* (Vigna, ACM TOMS 42(4), 2016).

Boxes are priced eight columns at a time. Numba has no type for that, and of a loop over columns,
whose number it does not know, the compiler keeps little in registers. Each function on such values
stands for a few instructions; its body says which, and is what runs without the compiler.
"""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import intrinsic, register_model

from shoal.data.numba_kernels import inlined, inner

LANES = 8
VECTOR = ir.VectorType(ir.IntType(32), LANES)


class Lanes(types.Type):  # type: ignore[misc]
    """The type of eight int32."""


@register_model(Lanes)
class _LanesModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, VECTOR)


EIGHT = Lanes("lanes")


def _compiled(returned: types.Type, write: Callable[..., Any]) -> Callable[[Any], Any]:
    """Has kernels use instructions instead of a function.

    write: makes them, given the builder and the operands; instead of an array and an index, the
    place of the eight from there on.
    """

    def generate(context: Any, builder: Any, found: Any, values: Any) -> Any:
        kind = found.args[0]
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, values[0])
            index = cgutils.unpack_tuple(builder, values[1])
            item = cgutils.get_item_pointer(context, builder, kind, array, index)
            values = builder.bitcast(item, VECTOR.as_pointer()), *values[2:]
        return write(builder, *values)

    def mark(plain: Any) -> Any:
        def typed(_: Any, *kinds: Any) -> Any:
            return returned(*kinds), generate

        taken = signature(plain)
        places = [Parameter("_", Parameter.POSITIONAL_ONLY), *taken.parameters.values()]
        typed.__signature__ = taken.replace(parameters=places)  # type: ignore[attr-defined]
        return plain if config.DISABLE_JIT else intrinsic(typed)  # type: ignore[attr-defined]

    return mark


def _load(builder: Any, place: Any) -> Any:
    return builder.load(place, align=4)


def _store(builder: Any, place: Any, eight: Any) -> Any:
    builder.store(eight, place, align=4)
    return ir.Constant(ir.IntType(8).as_pointer(), None)


def _chosen(comparison: str) -> Callable[..., Any]:
    def write(builder: Any, u: Any, v: Any, *others: Any) -> Any:
        then, otherwise = others or (u, v)
        return builder.select(builder.icmp_signed(comparison, u, v), then, otherwise)

    return write


def _spread(builder: Any, lo: Any, hi: Any) -> Any:
    kind = ir.FunctionType(ir.IntType(32), [VECTOR])
    add = cgutils.get_or_insert_function(builder.module, kind, "llvm.vector.reduce.add.v8i32")
    return builder.sext(builder.call(add, [builder.sub(hi, lo)]), ir.IntType(64))


@_compiled(EIGHT, _load)
def load(array, index):
    """The eight at array[index] and on."""
    return array[index[:-1]][index[-1] : index[-1] + LANES].copy()


@_compiled(types.none, _store)
def store(array, index, eight):
    """Puts eight to array[index] and on."""
    array[index[:-1]][index[-1] : index[-1] + LANES] = eight


@_compiled(EIGHT, _chosen("<"))
def lesser(u, v):
    """The lesser of each two."""
    return np.minimum(u, v)


@_compiled(EIGHT, _chosen(">"))
def greater(u, v):
    """The greater of each two."""
    return np.maximum(u, v)


@_compiled(EIGHT, _chosen("=="))
def where_equal(u, v, then, otherwise):
    """Those of `then` where u and v are equal, else those of `otherwise`."""
    return np.where(u == v, then, otherwise)


@_compiled(types.int32, lambda builder, *operands: builder.extract_element(*operands))
def lane_of(eight, lane):
    """One of eight."""
    return eight[lane]


@_compiled(types.int64, _spread)
def spread(lo, hi):
    """The sum of hi - lo, below 2**31."""
    return np.int64((hi - lo).sum())


K, CAPACITY, LINEAR, TREES, PER_TREE = range(5)
"""The entries of `shape`."""

LEAST, GREATEST, SECOND_LEAST, SECOND_GREATEST = range(4)
"""The first index of a class's box: what its codes reach, with and without the outermost."""

NOTHING = np.zeros((4, LANES), np.int32)
"""The box of nobody, as far as it is used: beyond all others."""
NOTHING[SECOND_LEAST] = 2147483647
NOTHING[SECOND_GREATEST] = -2147483648

NOISE_BITS = 10
"""The bits of a random number that a draw of `noise` takes."""


class SlotClasses(NamedTuple):
    """The classes now. Class c owns the slots from c * capacity on; the first ones are filled."""

    rows: np.ndarray  # (slots, columns) int32
    record: np.ndarray  # (slots,) int32
    size: np.ndarray  # (classes,) int64
    loss: np.ndarray  # (classes,) int64, of one record
    boxes: np.ndarray  # (classes, 4, columns) int32
    class_of: np.ndarray  # (n,) int32


@inner
def next_random(random):
    """The next 64 random bits, the highest are the best."""
    z = random[0]
    z ^= z >> np.uint64(12)
    z ^= z << np.uint64(25)
    z ^= z >> np.uint64(27)
    random[0] = z
    return z * np.uint64(0x2545F4914F6CDD1D)


@inner
def random_below(z, bound):
    """A number below `bound`, at most 2**31, from the high half of 64 random bits."""
    return np.int64(((z >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@inner
def tree_loss(lo, hi, tree, shape, table):
    """Loss of the lowest node over the leaves lo..hi."""
    first = shape[PER_TREE + 2 * tree]
    leaves = shape[PER_TREE + 2 * tree + 1]
    if leaves > 0:
        return np.int64(table[first + lo * leaves + hi])
    if lo == hi:
        return np.int64(0)
    leaves = -leaves
    level = np.int64(table[first + hi - lo])
    row = first + leaves + level * leaves
    return np.int64(max(table[row + lo], table[row + hi - (np.int64(1) << level)]))


@inlined
def price(j, lo, hi, shape, table):
    """Loss of the eight columns from j on over what lies from lo to hi."""
    tree = j - shape[LINEAR]
    total = spread(lo, hi) if tree < 0 else np.int64(0)
    for lane in range(0 if tree < 0 else min(LANES, shape[TREES] - tree)):
        total += tree_loss(lane_of(lo, lane), lane_of(hi, lane), tree + lane, shape, table)
    return total


@inner
def measure(c, classes, shape, table):
    """Fills in the box and the loss of class c."""
    rows = classes.rows
    boxes = classes.boxes
    first = c * shape[CAPACITY]
    total = np.int64(0)
    for j in range(0, boxes.shape[2], LANES):
        lo = load(rows, (first, j))
        hi = lo
        lo2 = load(NOTHING, (SECOND_LEAST, 0))
        hi2 = load(NOTHING, (SECOND_GREATEST, 0))
        for s in range(first + 1, first + classes.size[c]):
            v = load(rows, (s, j))
            lo2 = lesser(lo2, greater(lo, v))
            lo = lesser(lo, v)
            hi2 = greater(hi2, lesser(hi, v))
            hi = greater(hi, v)
        store(boxes, (c, LEAST, j), lo)
        store(boxes, (c, GREATEST, j), hi)
        store(boxes, (c, SECOND_LEAST, j), lo2)
        store(boxes, (c, SECOND_GREATEST, j), hi2)
        total += price(j, lo, hi, shape, table)
    classes.loss[c] = total


@inlined
def loss_with(s, c, classes, shape, table):
    """Loss of class c with the record of slot s."""
    total = np.int64(0)
    for j in range(0, classes.rows.shape[1], LANES):
        v = load(classes.rows, (s, j))
        lo = lesser(load(classes.boxes, (c, LEAST, j)), v)
        hi = greater(load(classes.boxes, (c, GREATEST, j)), v)
        total += price(j, lo, hi, shape, table)
    return total


@inlined
def bounds_without(v, c, j, boxes):
    """What class c reaches in the columns from j on without a member that has v there."""
    least = load(boxes, (c, LEAST, j))
    greatest = load(boxes, (c, GREATEST, j))
    lo = where_equal(v, least, load(boxes, (c, SECOND_LEAST, j)), least)
    hi = where_equal(v, greatest, load(boxes, (c, SECOND_GREATEST, j)), greatest)
    return lo, hi


@inlined
def loss_without(s, c, classes, shape, table):
    """Loss of class c without the record of its slot s."""
    total = np.int64(0)
    for j in range(0, classes.rows.shape[1], LANES):
        lo, hi = bounds_without(load(classes.rows, (s, j)), c, j, classes.boxes)
        total += price(j, lo, hi, shape, table)
    return total


@inner
def move(s, a, b, classes, shape):
    """Slot s of class a goes to class b; the last of a takes its place. Both are to be measured."""
    rows = classes.rows
    record = classes.record
    size = classes.size
    to = b * shape[CAPACITY] + size[b]
    last = a * shape[CAPACITY] + size[a] - 1
    for j in range(rows.shape[1]):
        rows[to, j] = rows[s, j]
        rows[s, j] = rows[last, j]
    record[to] = record[s]
    record[s] = record[last]
    classes.class_of[record[to]] = b
    size[a] -= 1
    size[b] += 1


# Exchanges between two classes of the local searches: what they cost, and who may make them.
#
# Priced from the boxes of both classes, with and without their outermost members, so that a try
# costs as much as a record has columns.


@inlined
def leaves_too_little(s, a, b, limit, classes, shape, table):
    """Whether no member of b can be exchanged for slot s of class a within the limit."""
    boxes = classes.boxes
    least = np.int64(0)
    for j in range(0, classes.rows.shape[1], LANES):
        v = load(classes.rows, (s, j))
        lo, hi = bounds_without(v, a, j, boxes)
        least += classes.size[a] * price(j, lo, hi, shape, table)
        lo = lesser(load(boxes, (b, SECOND_LEAST, j)), v)
        hi = greater(load(boxes, (b, SECOND_GREATEST, j)), v)
        least += classes.size[b] * price(j, lo, hi, shape, table)
    return least > limit


@inlined
def first_fit(s, a, b, start, limit, classes, bound, shape, table, tried=0):
    """The first slot of class b, from slot `start` on and round, whose exchange with slot s of
    class a stays within the limit, and what both classes lose then; -1 and 0 where none does. The
    first `tried` of them are left out.
    """
    rows = classes.rows
    record = classes.record
    for t in range(tried, classes.size[b]):
        p = start + t
        if p >= classes.size[b]:
            p -= classes.size[b]
        p += b * shape[CAPACITY]
        if bound.shape[1] > 0 and bound[0, record[p]] != bound[0, record[s]]:
            continue
        change = np.int64(0)
        for j in range(0, rows.shape[1], LANES):
            v = load(rows, (s, j))
            w = load(rows, (p, j))
            lo, hi = bounds_without(v, a, j, classes.boxes)
            change += classes.size[a] * price(j, lesser(lo, w), greater(hi, w), shape, table)
            lo, hi = bounds_without(w, b, j, classes.boxes)
            change += classes.size[b] * price(j, lesser(lo, v), greater(hi, v), shape, table)
            if change > limit:
                break
        if change <= limit and alone(s, a, p, b, classes, bound, shape):
            return p, change
    return np.int64(-1), np.int64(0)


@inlined
def alone(s, a, p, b, classes, bound, shape):
    """Whether the subjects of slots s and p have no other record in class a or b."""
    if bound.shape[1] == 0 or bound[1, classes.record[s]] < 0:
        return True
    one = bound[1, classes.record[s]]
    other = bound[1, classes.record[p]]
    met = np.int64(0)
    for c in (a, b):
        for t in range(c * shape[CAPACITY], c * shape[CAPACITY] + classes.size[c]):
            subject = bound[1, classes.record[t]]
            met += (subject == one) | (subject == other)
    return met == 2


@inlined
def change_places(s, a, p, b, classes):
    """Slots s and p change places; both classes are to be measured."""
    rows = classes.rows
    record = classes.record
    class_of = classes.class_of
    for j in range(rows.shape[1]):
        rows[s, j], rows[p, j] = rows[p, j], rows[s, j]
    record[s], record[p] = record[p], record[s]
    class_of[record[s]] = a
    class_of[record[p]] = b
