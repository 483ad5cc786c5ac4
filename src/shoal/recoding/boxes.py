"""Classes become one table in which every class shows the box around its members."""

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import polars as pl

from shoal.data.cut import Cut
from shoal.data.encoding import EncodedTable
from shoal.data.partition import Partition
from shoal.data.recoding import GlobalRecoding, Recoding
from shoal.data.schema import Render, Role, Schema
from shoal.data.table import Table, as_text, encode_text
from shoal.errors import InputError


class Boxes:
    """The renderer of every method so far: a cell covers what the members of its class hold."""

    name: ClassVar[str] = "boxes"

    def tables(
        self,
        table: Table,
        encoded: EncodedTable,
        classes: Partition | Cut | GlobalRecoding,
        schema: Schema,
    ) -> Mapping[str, pl.DataFrame]:
        """One table, rows and columns in the order of the input."""
        recoding = recoding_of_whole_table(classes, encoded, schema.render)
        index = {one.attribute.name: j for j, one in enumerate(encoded.attributes)}
        columns = []
        for attribute in schema.published:
            name = attribute.name
            if attribute.pseudonym is not None:
                columns.append(pseudonyms(table.series(name)))
            elif attribute.role is Role.QUASI:
                j = index[name]
                columns.append(recoding.column(j, encoded.attributes[j], schema.render))
            else:
                columns.append(table.series(name))
        return {"": pl.DataFrame(columns)}


def recoding_of_whole_table(
    classes: Partition | Cut | GlobalRecoding, encoded: EncodedTable, render: Render
) -> Recoding | GlobalRecoding:
    """What was found for the records that have all values, carried to the whole table."""
    if isinstance(classes, GlobalRecoding):
        return classes
    if isinstance(classes, Cut):
        of_record = encoded.of_all(classes.round_of_record())
        return GlobalRecoding.of(classes, of_record, encoded.attributes, render)
    recoding = Recoding.of(encoded.of_all(classes.labels), classes.count, encoded.attributes)
    return replace(recoding, has_stars=classes.has_stars)


# Keyed pseudonyms for direct identifiers.


KEY_VARIABLE = "SHOAL_PSEUDONYM_KEY"


def pseudonyms(series: pl.Series) -> pl.Series:
    """32 hexadecimal digits for each identifier: its HMAC-SHA-256 under the owner's key.

    The key comes from the environment, never from the policy, which is shared. Raises InputError
    where it is absent or shorter than 16 characters.
    """
    key = os.environ.get(KEY_VARIABLE, "")
    if len(key.strip()) < 16:
        raise InputError(
            f"identifier '{series.name}': a keyed pseudonym needs a secret; set {KEY_VARIABLE} to"
            " 16 characters or more, not counting blanks around them"
        )
    column = encode_text(as_text(series).alias(series.name))
    tokens = [
        hmac.new(key.encode(), cell.encode(), hashlib.sha256).hexdigest()[:32]
        for cell in column.cells
    ]
    return pl.Series(series.name, tokens).gather(column.codes)
