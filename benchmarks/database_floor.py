"""The floor under a `shoal publish` from table to table: the same cells out and in, nothing else.

python database_floor.py load INPUT.csv ORIGINAL           an original with a key, from a file
python database_floor.py copy ORIGINAL RELEASED COPIED     reads one, writes the other once more

The release has to come into memory, so that is read, too: as often as a publish reads it back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import polars as pl

from shoal.connectors.database.session import quoted
from shoal.connectors.database.tables import opened
from shoal.connectors.location import parse_address


def load(source: str, original: str) -> None:
    frame = pl.read_csv(source, infer_schema=False)
    _write(frame, original, key=True)


def copy(original: str, released: str, copied: str) -> None:
    _read(original, "id")
    with opened(parse_address(released)) as table:
        names = [column.name for column in table.columns][1:]
        cells = ", ".join(f'{quoted(name)} AS "{i}"' for i, name in enumerate(names))
        release = table.session.query(f"SELECT {cells} FROM {table.quoted}")
    _write(release, copied, key=False)


def _read(address: str, key: str) -> pl.DataFrame:
    with opened(parse_address(address)) as table:
        return table.rows_as_text(table.columns, f"ORDER BY {quoted(key)}")


def _write(frame: pl.DataFrame, address: str, key: bool) -> None:
    with opened(parse_address(address), writing=True) as table:
        texts = ", ".join(f"{quoted(name)} text" for name in frame.columns)
        number = "id bigint PRIMARY KEY, " if key else ""
        table.session.execute(f"DROP TABLE IF EXISTS {table.quoted}")
        table.session.execute(f"CREATE TABLE {table.quoted} ({number}{texts})")
        if key:
            numbers = pl.int_range(1, frame.height + 1, dtype=pl.Int64, eager=True).alias("id")
            frame = frame.insert_column(0, numbers)
        table.session.insert(table, frame)
        table.session.commit()


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {"load": load, "copy": copy}
    commands[sys.argv[1]](*sys.argv[2:])
