"""Eight neighbouring int32 of an array as one value that fits a vector register.

Boxes are priced eight columns at a time. Numba has no type for that, and of a loop over columns,
whose number it does not know, the compiler keeps little in registers. Each function here stands for
a few instructions; its body says which, and is what runs without the compiler.
"""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
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
