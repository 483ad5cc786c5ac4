"""Frames with columns of every type that pandas, polars and pyarrow have, and names of every kind.

A case is a function of Shoal's Python door with such a frame: it gives a result, or a ShoalError.
"""

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

ROWS = 24
CELLS: dict[str, Callable[[int], Any]] = {
    "dicts": lambda n: {"a": n},
    "lists": lambda n: [n, [n]],
    "exceptions": lambda n: ValueError(n),
    "objects": lambda n: object(),
    "sets": lambda n: {n},
    "bytes": lambda n: bytes([n]),
    "decimals": lambda n: Decimal(n) / 7,
    "fractions": lambda n: Fraction(n, 7),
    "complex": lambda n: complex(n, 1),
    "large": lambda n: 10**40 + n,
    "durations": lambda n: dt.timedelta(days=n),
    "days": lambda n: dt.date(2000, 1, n % 28 + 1),
    "times": lambda n: dt.time(n % 24),
    "zoned": lambda n: dt.datetime(2000, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=n % 12))),
    "uuids": lambda n: UUID(int=n),
    "nulls": lambda n: None,
    "not numbers": lambda n: float("nan"),
    "ends": lambda n: [float("inf"), -float("inf"), 1e308, -0.0][n % 4],
    "truths": lambda n: [True, False, None][n % 3],
    "texts": lambda n: f"t{n % 3}",
    "zeros": lambda n: "\0",
    "mixed": lambda n: [n, "x", None, 1.5, b"x", dt.date(2000, 1, 1)][n % 6],
    "types": lambda n: [int, float][n % 2],
    "functions": lambda n: len,
}
PANDAS: dict[str, Callable[[Any], Any]] = {
    "periods": lambda pd: pd.period_range("2020-01", periods=ROWS, freq="M"),
    "intervals": lambda pd: pd.interval_range(0, ROWS),
    "cut": lambda pd: pd.cut(range(ROWS), 3),
    "ordered": lambda pd: pd.Categorical(["b", "a", None] * 8, ["b", "a"], ordered=True),
    "categories of days": lambda pd: pd.Categorical(pd.date_range("2000", periods=ROWS)),
    "sparse": lambda pd: pd.arrays.SparseArray([0, 1] * 12),
    "nullable": lambda pd: pd.array([1, None] * 12, dtype="Int64"),
    "text": lambda pd: pd.array(["a", None] * 12, dtype="string"),
    "spans": lambda pd: pd.to_timedelta(range(ROWS), unit="h"),
    "far": lambda pd: pd.Series(["9999-12-31"] * ROWS).astype("datetime64[s]"),
    "halves": lambda pd: pd.Series(range(ROWS), dtype="float16"),
    "frames": lambda pd: [pd.DataFrame({"a": [1]})] * ROWS,
    "stamps": lambda pd: [pd.NaT, pd.Timestamp("2000", tz="UTC")] * 12,
    "missing": lambda pd: [pd.NA] * ROWS,
}
POLARS: dict[str, Callable[[Any], Any]] = {
    "array": lambda pl: pl.Series([[1, 2]] * ROWS, dtype=pl.Array(pl.Int8, 2)),
    "struct": lambda pl: pl.Series([{"a": [{"b": 1}]}] * ROWS),
    "decimal": lambda pl: pl.Series([Decimal(10**37)] * ROWS, dtype=pl.Decimal(38, 0)),
    "enum": lambda pl: pl.Series(["b", "a"] * 12, dtype=pl.Enum(["b", "a"])),
    "categorical": lambda pl: pl.Series(["b", None] * 12, dtype=pl.Categorical),
    "wide": lambda pl: pl.Series([2**100, -(2**100)] * 12, dtype=pl.Int128),
    "fine": lambda pl: pl.Series(range(ROWS)).cast(pl.Datetime("ns", "Europe/Berlin")),
    "object": lambda pl: pl.Series([object()] * ROWS, dtype=pl.Object),
    "small": lambda pl: pl.Series(range(ROWS), dtype=pl.UInt8),
    "nothing": lambda pl: pl.Series([None] * ROWS, dtype=pl.Null),
    "nested nothing": lambda pl: pl.Series([[None]] * ROWS, dtype=pl.List(pl.Null)),
}
ARROW: dict[str, Callable[[Any], Any]] = {
    "decimal 76": lambda pa: pa.array([Decimal(n) for n in range(ROWS)], pa.decimal256(76, 2)),
    "decimal 38": lambda pa: pa.array([Decimal(n) for n in range(ROWS)], pa.decimal128(38, 30)),
    "dictionary": lambda pa: pa.array(["a", None] * 12).dictionary_encode(),
    "numbers by dictionary": lambda pa: pa.array([1, 2] * 12).dictionary_encode(),
    "run ends": lambda pa: pa.RunEndEncodedArray.from_arrays([ROWS], pa.array(["a"])),
    "map": lambda pa: pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
    "union": lambda pa: pa.UnionArray.from_sparse(
        pa.array([0, 1] * 12, pa.int8()), [pa.array(range(ROWS)), pa.array(["a"] * ROWS)]
    ),
    "month": lambda pa: pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval()),
    "half": lambda pa: pa.array(range(ROWS)).cast(pa.float32()).cast(pa.float16()),
    "view": lambda pa: pa.array(["a"] * ROWS, pa.string_view()),
    "bytes view": lambda pa: pa.array([b"\xff"] * ROWS, pa.binary_view()),
    "fixed": lambda pa: pa.array([b"\xffa"] * ROWS, pa.binary(2)),
    "large text": lambda pa: pa.array(["a"] * ROWS, pa.large_string()),
    "list view": lambda pa: pa.array([[1]] * ROWS, pa.list_view(pa.int64())),
    "uuid": lambda pa: pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16] * ROWS)),
    "json": lambda pa: pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"] * ROWS)),
    "bool8": lambda pa: pa.ExtensionArray.from_storage(
        pa.bool8(), pa.array([0, 1] * 12, pa.int8())
    ),
    "opaque": lambda pa: pa.ExtensionArray.from_storage(
        pa.opaque(pa.int64(), "x", "y"), pa.array(range(ROWS))
    ),
    "tensor": lambda pa: pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[1, 2]] * ROWS, pa.list_(pa.int8(), 2))
    ),
    "time": lambda pa: pa.array(range(ROWS), pa.int32()).cast(pa.time32("s")),
    "span": lambda pa: pa.array(range(ROWS), pa.duration("s")),
    "far day": lambda pa: pa.array([2**31 - 1] * ROWS, pa.int32()).cast(pa.date32()),
    "far time": lambda pa: pa.array([2**62] * ROWS, pa.timestamp("s")),
    "null": lambda pa: pa.nulls(ROWS),
}
NAMES: list[Any] = ["odd", "age", "", 0, 1.5, None, float("nan"), ("a", 1), b"x", True]
NAMES += ["\0", "a\nb", dt.date(2000, 1, 1), "x" * 5000, Decimal(1), frozenset({1})]
ROLES = ("quasi", "sensitive", "plain", "identifier", "subject", "time")
NO_FRAMES: list[Any] = [None, 1, "t.csv", {}, {"a": [1]}, [], [{"a": 1}], object(), b"x"]


def frame_of(draw: random.Random) -> tuple[Any, list[Any]]:
    """A frame of 24 people with up to three odd columns, and the names of these."""
    numbers = random.Random(1)
    columns: dict[str, list[Any]] = {
        "id": [f"p{n}" for n in range(ROWS)],
        "age": [numbers.randrange(100) for _ in range(ROWS)],
        "sex": [numbers.choice("fm") for _ in range(ROWS)],
        "ill": [f"zq7w{numbers.choice('abcd')}" for _ in range(ROWS)],
    }
    library = draw.choice(["pandas", "polars", "pyarrow"])
    count = draw.choice([1, 1, 1, 2, 3])
    module = __import__(library)
    own = {"pandas": PANDAS, "polars": POLARS, "pyarrow": ARROW}[library]
    chosen: dict[str, Any] = {}
    for kind in draw.sample([*own, *CELLS], count):
        try:
            chosen[kind] = own[kind](module) if kind in own else _cells(kind, library, draw)
        except Exception:  # a library that can't make this column
            chosen[kind] = ["x"] * ROWS
    names = [draw.choice(NAMES) if draw.random() < 0.3 else kind for kind in chosen]
    if library == "pandas":
        parts = [module.Series(v, name=n) for n, v in columns.items()]
        parts += [module.Series(v, name="odd") for v in chosen.values()]
        frame = module.concat(parts, axis=1)
        frame.columns = module.Index([*columns, *names], dtype=object)
        kind = draw.random()
        if kind < 0.1:
            frame.columns = module.MultiIndex.from_tuples([("a", str(n)) for n in frame.columns])
        elif kind < 0.2:
            frame.index = module.MultiIndex.from_product([range(ROWS), ["age"]], names=["id", None])
        elif kind < 0.3:
            frame = frame.set_index(frame.columns[draw.randrange(len(frame.columns))])
        elif kind < 0.4:
            frame = frame.iloc[[0] * ROWS]
        return frame, names
    names = [str(name) for name in names]
    if library == "polars":
        return module.DataFrame(
            {**columns, **dict(zip(names, chosen.values(), strict=True))}
        ), names
    arrays = [*(module.array(v) for v in columns.values()), *chosen.values()]
    return module.table(arrays, names=[*columns, *names]), names


def _cells(kind: str, library: str, draw: random.Random) -> Any:
    cells = [None if draw.random() < 0.1 else CELLS[kind](n) for n in range(ROWS)]
    if library == "pyarrow":
        import pyarrow as pa

        return pa.array(cells)
    if library == "polars":
        import polars as pl

        return pl.Series(cells) if draw.random() < 0.7 else pl.Series(cells, dtype=pl.Object)
    return cells


def call(seed: str) -> str:
    """Calls one function with an odd frame; returns what was done, or raises what it raises.

    Where every odd column is dropped, nothing may be refused.
    """
    import shoal

    draw = random.Random(seed)
    frame, odd = frame_of(draw)
    verb = draw.choice(["publish", "propose", "profile", "audit", "risk", "check", "like"])
    role = draw.choice(["drop", "drop", "other", *ROLES])
    if draw.random() < 0.03:
        frame = draw.choice(NO_FRAMES)
    attributes: dict[Any, Any] = {
        "id": {"role": "subject"},
        "age": {"role": "quasi"},
        "sex": {"role": "quasi"},
        "ill": {"role": "sensitive"},
    }
    if role != "other":
        attributes |= {name: {"role": role} for name in odd if name not in attributes}
    policy = {
        "version": 1,
        "attributes": attributes,
        "other": draw.choice(["drop", "plain"]) if role != "other" else "drop",
        "promises": [{"model": "k-anonymity", "k": 3}],
        "seed": 1,
    }
    if verb == "propose":
        shoal.propose_policy(frame, explain=draw.random() < 0.5)
    elif verb == "profile":
        shoal.profile(frame, policy=draw.choice([None, policy]))
    elif verb == "audit":
        shoal.audit(frame, policy, original=draw.choice([None, frame]))
    elif verb == "risk":
        shoal.risk(frame, policy)
    elif verb == "check":
        shoal.check(policy, frame)
    elif verb == "like":
        shoal.publish(frame, quasi=["age", *draw.sample(odd, 1)], k=2, drop=["id"], other="drop")
    else:
        repr(shoal.publish(frame, policy))
    return f"{verb} {role} {odd}"
