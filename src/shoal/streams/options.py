"""What a run of a stream was asked for, and whether it can be done."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.connectors.location import JSON_LINES, Location
from shoal.data.option import Request, option
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.connectors.formats import Format


class StreamOptions(Request):
    """What a run was asked for, as the command line takes it."""

    source: str = option("SOURCE", "The records; '-' reads CSV from standard input.", ...)
    sink: str = option("-o, --output SINK", "Where rows go; '-' writes CSV.", ...)
    checkpoint: Path | None = option(
        "--checkpoint DIR", "Keeps all state; the same command resumes."
    )
    trace: str | None = option("--trace FILE", "What became of every record (JSON lines); private.")
    dead_letters: str | None = option(
        "--dead-letters FILE|stop", "Where bad records are listed, by place; stop ends at one."
    )
    follow: bool = option("--follow", "Wait for more when the file ends.", False)
    deadline: float | None = option(
        "--deadline SECONDS", "Release records after so long, too.", low=0
    )
    durability: str = option(
        "--durability",
        "What a commit survives: power (of the machine) or process.",
        "power",
        choices=("power", "process"),
    )
    measured: str = option(
        "--measure",
        "The certificate: of the whole file, or by release in flat memory.",
        "whole",
        choices=("whole", "release"),
    )
    read: tuple[str, ...] = ()
    """Files that its policy reads, its own among them."""

    @property
    def folder(self) -> Path:
        """The checkpoint, where there has to be one."""
        assert self.checkpoint is not None
        return self.checkpoint

    @property
    def is_durable(self) -> bool:
        return self.durability == "power"

    @property
    def stops_at_bad(self) -> bool:
        return self.dead_letters == "stop"

    @property
    def named_letters(self) -> str | None:
        """The file that was named to list bad records."""
        return None if self.stops_at_bad else self.dead_letters

    @property
    def bad_records(self) -> Path:
        """The file that lists records which were set aside."""
        if self.named_letters is None and self.checkpoint is not None and self.by_transactions:
            return self.checkpoint / "dead-letters.jsonl"
        beside = "stream" if self.place.is_standard else self.sink.rstrip("/")
        return Path(self.named_letters or f"{beside}.dead-letters.jsonl")

    @property
    def place(self) -> Location:
        return Location(self.sink)

    @property
    def by_transactions(self) -> bool:
        """Whether the sink takes each step whole, and knows which it has."""
        return self.place.is_topic or self.place.is_table

    @property
    def is_rolling(self) -> bool:
        """Whether rows go to a folder, file by file."""
        return self.place.is_path and self.place.is_folder

    @property
    def outputs(self) -> list[Path]:
        return _paths_of(self.sink, self.trace, self.named_letters)

    @property
    def format(self) -> "Format":
        from shoal.connectors.formats import format_of

        form = format_of(JSON_LINES) if self.by_transactions else self.place.kind_to_write
        if form.has_sheets:
            raise InputError(
                f"output '{self.sink}': a workbook does not grow; name a .csv, or another format"
            )
        return form

    @property
    def certificate_path(self) -> str:
        """Beside the sink; in the checkpoint where that is a topic."""
        if self.place.is_topic and self.checkpoint is not None:
            return str(self.checkpoint / "certificate.json")
        return self.place.certificate

    def check(self) -> None:
        """Raises InputError with everything that can't be done."""
        refuse_table(self.source)
        written = self.outputs
        findings = [
            *self._contradictions(written),
            *(f"output '{path}': {_UNWRITABLE}" for path in written if not self._may_be(path)),
        ]
        InputError.raise_for(findings)
        _ = self.format  # raises where no format has that suffix

    def _may_be(self, output: Path) -> bool:
        is_sink = self.is_rolling and output == Path(self.sink).resolve()
        is_free = is_sink or not output.is_dir()
        return is_free and output.parent.is_dir() and os.access(output.parent, os.W_OK)

    def _contradictions(self, written: list[Path]) -> list[str]:
        # they need Polars, which help does without
        from shoal.connectors.outputs import in_ledgers, lock_of, misplaced, signature_path

        taken = {*_paths_of(self.source, *self.read, str(self.checkpoint or self.source))}
        # what is written without being named
        letters = None if self.named_letters else str(self.bad_records)
        certificate = self.certificate_path
        taken |= {*_paths_of(certificate, signature_path(certificate), letters)}
        taken |= {lock_of(path) for path in _paths_of(self.sink)}
        what, suffix = "topic" if self.place.is_topic else "table", Path(self.sink).suffix
        contradictions = (
            (
                self.by_transactions and self.checkpoint is None,
                f"output '{self.sink}': rows in a {what} can't be taken back; give --checkpoint,"
                " so that each is sent once",
            ),
            (
                len(set(written)) < len(written) or not taken.isdisjoint(written),
                "outputs: a file is named twice, is also read, or is where the checkpoint, the"
                " certificate or the list of bad records goes; give each a file of its own",
            ),
            (
                self.place.is_standard and self.checkpoint is not None,
                "output '-': standard output can't be resumed; write to a file, or leave out"
                " --checkpoint",
            ),
            (
                self.is_rolling and self.checkpoint is None,
                f"output '{self.sink}': a folder gets file after file; give --checkpoint, so that"
                " each is put once",
            ),
            (
                self.place.is_path and not (self.is_rolling or suffix),
                f"output '{self.sink}': has no suffix that names a format; name a file, such as"
                f" '{self.sink}.csv', or a folder: '{self.sink}/'",
            ),
            (
                self.is_rolling and bool(suffix),
                f"output '{self.sink}': is a folder; name it without a file's suffix",
            ),
            (
                self.follow and self.checkpoint is None,
                "--follow: a stream without end needs --checkpoint, so that it can be stopped and"
                " resumed",
            ),
            (
                self.deadline is not None and not 0 <= self.deadline < math.inf,
                "--deadline: is not a number of seconds; give one of 0 or more, or leave it out",
            ),
        )
        findings = [said for is_so, said in contradictions if is_so]
        findings += in_ledgers(self.sink, self.trace, self.named_letters, self.checkpoint)
        if self.is_rolling:
            findings += misplaced("stream", [self.sink], self.trace, self.named_letters)
            findings += (
                [] if self.checkpoint is None else _nested([Path(self.sink), self.checkpoint])
            )
        return findings


def refuse_table(source: str) -> None:
    """Raises InputError where a stream would read a table in a database."""
    place = Location(source)
    if place.is_table:
        raise InputError(
            f"source '{place.address.shown}': a stream reads files and topics; publish a table with"
            " 'shoal publish'"
        )


_UNWRITABLE = "can't be written; name a file in a folder that exists and is writable"


def _paths_of(*names: str | None) -> list[Path]:
    return [Path(name).resolve() for name in names if name is not None and Location(name).is_path]


# What an engine can do with a stream.


def unfit_for_engine(options: StreamOptions) -> list[str]:
    """Everything that an engine can't do of what is asked."""
    source, sink = Path(options.source), Path(options.sink)
    findings = []
    if not (Location(options.source).is_path and source.is_dir()):
        findings.append(
            f"source '{options.source}': is not a folder; an engine reads a stream from the files"
            " of a folder, which all workers see"
        )
    if options.by_transactions or not (options.sink.endswith("/") or sink.is_dir()) or sink.suffix:
        findings.append(
            f"output '{options.sink}': is not a folder; an engine writes a stream into one: end"
            " its name with '/', and without a file's suffix"
        )
    elif not sink.absolute().parent.is_dir():
        findings.append(f"output '{options.sink}': lies in a folder that does not exist; make it")
    if options.checkpoint is None:
        findings.append(
            "--checkpoint: is missing; an engine keeps the state of a stream in a folder that all"
            " workers see"
        )
    else:
        findings += _nested([source, sink, options.checkpoint])
    return findings + [
        f"{name}: is not for a stream by an engine; leave it out: {instead}"
        for name, is_given, instead in (
            ("--trace", options.trace is not None, "no trace is written"),
            ("--deadline", options.deadline is not None, "batches have no clock"),
        )
        if is_given
    ]


def _nested(folders: list[Path]) -> list[str]:
    whole = [folder.resolve() for folder in folders]
    if any(
        one == other or one in other.parents
        for at, one in enumerate(whole)
        for place, other in enumerate(whole)
        if at != place
    ):
        return ["source, output and checkpoint: one lies in another; give each a folder of its own"]
    return []
