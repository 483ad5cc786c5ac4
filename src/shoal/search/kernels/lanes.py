"""Eight neighbouring int32 of an array as one value that fits a vector register.

Boxes are priced eight columns at a time. Numba has no type for that, and of a loop over columns,
whose number it does not know, the compiler keeps little in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import intrinsic, register_model

LANES = 8
VECTOR = ir.VectorType(ir.IntType(32), LANES)


class Lanes(types.Type):  # type: ignore[misc]
    """The type of eight int32."""


@register_model(Lanes)
class _LanesModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, VECTOR)


EIGHT = Lanes("lanes")
_compiled: Callable[[Callable[..., Any]], Any] = intrinsic


def _written(signature: Any, write: Callable[..., Any]) -> Any:
    """What Numba asks of an intrinsic. write: the instructions, given the builder and the operands;
    instead of an array and an index, the place of the eight from there on.
    """

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        kind = signature.args[0]
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, values[0])
            index = cgutils.unpack_tuple(builder, values[1])
            item = cgutils.get_item_pointer(context, builder, kind, array, index)
            values = builder.bitcast(item, VECTOR.as_pointer()), *values[2:]
        return write(builder, *values)

    return signature, generate


def _load(builder: Any, place: Any) -> Any:
    return builder.load(place, align=4)


def _store(builder: Any, place: Any, eight: Any) -> Any:
    builder.store(eight, place, align=4)
    return ir.Constant(ir.IntType(8).as_pointer(), None)


def _fill(builder: Any, value: Any) -> Any:
    eight = ir.Constant(VECTOR, ir.Undefined)
    for lane in range(LANES):
        eight = builder.insert_element(eight, value, ir.IntType(32)(lane))
    return eight


def _chosen(comparison: str) -> Callable[..., Any]:
    def write(builder: Any, u: Any, v: Any, *others: Any) -> Any:
        then, otherwise = others or (u, v)
        return builder.select(builder.icmp_signed(comparison, u, v), then, otherwise)

    return write


def _spread(builder: Any, lo: Any, hi: Any) -> Any:
    kind = ir.FunctionType(ir.IntType(32), [VECTOR])
    add = cgutils.get_or_insert_function(builder.module, kind, "llvm.vector.reduce.add.v8i32")
    return builder.sext(builder.call(add, [builder.sub(hi, lo)]), ir.IntType(64))


@_compiled
def load(_: Any, array: Any, index: Any) -> Any:
    """The eight at array[index] and on."""
    return _written(EIGHT(array, index), _load)


@_compiled
def store(_: Any, array: Any, index: Any, eight: Any) -> Any:
    """Puts eight to array[index] and on."""
    return _written(types.none(array, index, eight), _store)


@_compiled
def fill(_: Any, value: Any) -> Any:
    """Eight times an int32."""
    return _written(EIGHT(types.int32), _fill)


@_compiled
def lesser(_: Any, u: Any, v: Any) -> Any:
    """The lesser of each two."""
    return _written(EIGHT(u, v), _chosen("<"))


@_compiled
def greater(_: Any, u: Any, v: Any) -> Any:
    """The greater of each two."""
    return _written(EIGHT(u, v), _chosen(">"))


@_compiled
def where_equal(_: Any, u: Any, v: Any, then: Any, otherwise: Any) -> Any:
    """Those of `then` where u and v are equal, else those of `otherwise`."""
    return _written(EIGHT(u, v, then, otherwise), _chosen("=="))


@_compiled
def lane_of(_: Any, eight: Any, lane: Any) -> Any:
    """One of eight."""
    return _written(types.int32(eight, lane), lambda builder, *of: builder.extract_element(*of))


@_compiled
def spread(_: Any, lo: Any, hi: Any) -> Any:
    """The sum of hi - lo, below 2**31."""
    return _written(types.int64(lo, hi), _spread)
