"""Apache ORC: columns with types, which are read whole by PyArrow and never written."""

from pathlib import Path

import polars as pl

from shoal.connectors.formats import Asked, Format, SourceFile
from shoal.connectors.typed import INCOMPLETE, nan_counts, plain, table_errors
from shoal.data.regular_files import CELL, most_unpacked, require_room
from shoal.data.table import Table
from shoal.data.warnings import nan_remarks
from shoal.errors import InputError, MissingExtraError

ROWS = 4096
"""Records that are unpacked before their size is looked at again."""


class Orc(Format):
    """ORC, which PyArrow reads."""

    label = "ORC"
    media_type = "application/vnd.apache.orc"
    magic = b"ORC"
    has_types = True
    is_typed = True
    is_compressed = True
    is_written = False

    def read(self, asked: Asked) -> SourceFile:
        path, reading = asked.path, asked.reading
        where = f"file '{path}'"
        try:
            import pyarrow as pa
            from pyarrow import dataset, orc
        except ImportError:
            raise MissingExtraError.of(
                f"{where}: needs PyArrow, of the extra 'spark'", "spark"
            ) from None
        damaged = InputError(f"{where}: {INCOMPLETE.format('orc')}")
        most = most_unpacked(Path(path).stat().st_size, reading.unpacked)
        try:
            with open(path, "rb") as file:
                footer = orc.ORCFile(file)
                schema, cells = footer.schema, footer.nrows * len(footer.schema)
                if len({*schema.names}) < len(schema):
                    raise InputError(f"{where}: two columns have one name; rename one of them")
                require_room(CELL * cells, most, where)
            batches, size = [], 0
            for batch in dataset.dataset(path, format="orc").to_batches(batch_size=ROWS):
                size += batch.nbytes
                require_room(size, most, where)
                batch.validate(full=True)  # Polars takes every text for UTF-8
                batches.append(batch)
            with table_errors(path, ".orc", where):
                frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches(batches, schema)))
        except (pa.ArrowException, UnicodeDecodeError):
            raise damaged from None
        except OSError as failed:
            if failed.errno is not None:  # the system's: said by whoever opens files
                raise
            raise damaged from None
        remarks = nan_remarks(nan_counts(frame, reading))
        return SourceFile(Table(plain(frame, where, reading)), remarks=remarks)


FORMATS = (Orc(".orc"),)
