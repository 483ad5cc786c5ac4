"""Batches of a stream whose columns have another type than those of the first one."""

import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.errors import InputError

POLICY = content_of(
    {
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "amount": {"role": "plain"},
        "ill": {"role": "sensitive"},
    },
    3,
    method={"name": "fads", "delta": 40},
    seed=1,
)


def batch(amount: pl.Series, ill: pl.Series | None = None) -> pl.DataFrame:
    n = len(amount)
    age = pl.Series("age", [20 + (7 * i) % 60 for i in range(n)])
    sick = pl.Series("ill", ["flu", "cold"] * (n // 2)) if ill is None else ill.alias("ill")
    return pl.DataFrame([age, amount.alias("amount"), sick])


def published(*batches: pl.DataFrame) -> pl.DataFrame:
    stream = shoal.stream(POLICY)
    rows = [*(stream.push(one) for one in batches), stream.flush()]
    return pl.concat([one.cast(pl.String) for one in rows])


WHOLE = pl.Series([10 * i for i in range(20)])


@pytest.mark.parametrize(
    ("first", "later", "shown"),
    [
        (WHOLE, WHOLE.cast(pl.Float64), "10"),
        (WHOLE, pl.Series([None, *range(19)], dtype=pl.Float64), "10"),
        (WHOLE.cast(pl.Float64), WHOLE, "10.0"),
        (WHOLE, WHOLE.cast(pl.Int16), "10"),
        (WHOLE, pl.Series([None] * 20), "10"),
        (pl.Series([None] * 20), WHOLE, "10"),
        (WHOLE.cast(pl.String), WHOLE.cast(pl.String).cast(pl.Categorical), "10"),
        (WHOLE.cast(pl.String).cast(pl.Categorical), WHOLE.cast(pl.String), "10"),
    ],
)
def test_a_batch_takes_the_first_types_where_that_loses_nothing(first, later, shown):
    rows = published(batch(first), batch(later))
    assert rows.height == 40
    assert shown in rows["amount"].to_list()


def test_a_sensitive_column_may_be_categorical_later():
    ill = pl.Series(["flu", "cold"] * 10)
    rows = published(batch(WHOLE, ill), batch(WHOLE, ill.cast(pl.Categorical)))
    assert sorted(rows["ill"].unique()) == ["cold", "flu"]


@pytest.mark.parametrize(
    ("first", "later", "types"),
    [
        (WHOLE, WHOLE + 0.5, ("Float64", "Int64")),
        (WHOLE, pl.Series(["canary"] * 20), ("String", "Int64")),
        (WHOLE.cast(pl.Date), WHOLE, ("Int64", "Date")),
        (WHOLE, pl.Series([True] * 20), ("Boolean", "Int64")),
    ],
)
def test_a_batch_that_would_lose_something_is_refused_and_not_taken_in(first, later, types):
    stream = shoal.stream(POLICY)
    stream.push(batch(first))
    waiting = stream.waiting
    with pytest.raises(InputError) as refused:
        stream.push(batch(later))
    assert str(refused.value) == (
        f"attribute 'amount': this batch holds {types[0]}, the stream began with {types[1]};"
        f" convert the column to {types[1]}"
    )
    assert stream.waiting == waiting
    assert stream.push(batch(first)).height + stream.flush().height == 40
