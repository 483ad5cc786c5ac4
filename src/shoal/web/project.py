"""A project: one folder with one table's policy, its history, its drafts and its releases."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from shoal.connectors.dialect import Dialect
from shoal.connectors.outputs import take_lock
from shoal.data.language import gettext
from shoal.data.linked import PEOPLE
from shoal.errors import InputError
from shoal.web import policy_text as files
from shoal.web.policy_text import Context, Entry, History, is_ours, read, sha256, written
from shoal.web.several import flat

PROJECT, POLICY, RELEASE = "project.yaml", "policy.yaml", "release.yaml"
RUN = re.compile(r"\d{4,}")
CERTIFICATE = "certificate.json"
DATA, TABLES = "data.csv", "data"
"""What a draft publishes: a file, or of several tables a folder of files."""
DRAFT = "draft.csv"
PACK = "for-the-recipient.zip"
EVENTS = "events.jsonl"
SHOWN = "shown.json"
"""What Result shows of a draft beside its certificate, safe to show as its report is."""
TRACE = "trace.jsonl"
"""Whose row is whose in a draft; never part of a release."""
ASKED = "asked-"  # below .ui/: copies of hierarchies for jobs without a folder of their own


class Copy(NamedTuple):
    """A copy of the released table: its file, what it is to its readers, and how it is written."""

    name: str
    title: str
    dialect: Dialect | None = None


COPIES = (
    Copy("data.xlsx", gettext("Excel workbook")),
    Copy("data-semicolons.csv", gettext("CSV that a European Excel opens"), Dialect(";", bom=True)),
    Copy("data.parquet", gettext("Parquet, for programs")),
)


class Stale(Exception):
    """An edit was made on a text that somebody has changed meanwhile."""


class Busy(Exception):
    """Another server has this project; holds what it says about itself."""


@dataclass(frozen=True)
class Run:
    """One folder below runs/: a draft, what was asked for it and what became of it."""

    number: int
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def about(self) -> Context:
        """What the job was asked and how it ended; empty where neither is known."""
        return files.json_of(self.folder / "run.json", {})

    @property
    def policy_text(self) -> str:
        """The policy that was asked for."""
        return files.text_of(self.folder / POLICY) or ""

    @property
    def policy(self) -> Context:
        return read(self.policy_text)

    @property
    def certificate(self) -> Context:
        return files.json_of(self.folder / CERTIFICATE, {})

    @property
    def data(self) -> Path:
        """What it publishes: a file, or a folder of several tables."""
        return data_in(self.folder)

    @property
    def state(self) -> str:
        """done, refused, stopped, failed; interrupted where nobody could say."""
        if (self.folder / CERTIFICATE).is_file():
            return "done"
        return str(self.about.get("state") or "interrupted")


def data_in(folder: Path) -> Path:
    """What a draft or a release holds: a file, or a folder of several tables."""
    return folder / TABLES if (folder / TABLES).is_dir() else folder / DATA


def tables_in(folder: Path) -> list[Path]:
    """The files of several tables that were published together."""
    return sorted(path for path in folder.glob("[!._]*") if path.name != CERTIFICATE)


def certificate_of(data: Path) -> Path:
    """The certificate of what was released."""
    return data / CERTIFICATE if data.is_dir() else data.with_name(f"{data.name}.{CERTIFICATE}")


class Project:
    """The folder of a project. start: below which tables may be opened."""

    def __init__(self, folder: Path, start: Path) -> None:
        self.folder = files.made(folder).resolve()
        self.start = start.resolve()
        self.history = History(self.folder / "history")
        self._lock: int | None = None

    @property
    def name(self) -> str:
        return self.folder.name

    # What is asked

    @property
    def about(self) -> Context:
        """project.yaml: the table's path, size and hash, and answers that no policy holds."""
        text = files.text_of(self.folder / PROJECT)
        return {} if text is None else read(text, PROJECT)

    @property
    def table(self) -> Path | None:
        """The table that was chosen; None before."""
        named = self.about.get("table")
        return (self.folder / str(named)).resolve() if isinstance(named, str) else None

    @property
    def table_in_commands(self) -> str:
        """Its path from the project's folder."""
        return str(self.about.get("table", "TABLE"))

    def in_commands(self, path: str | Path) -> str:
        """A path from the project's folder, as commands there name it."""
        return Path(os.path.relpath(path, self.folder)).as_posix()

    @property
    def publish_command(self) -> list[str]:
        """What publishes the table by its policy, as it is typed in the project's folder."""
        output = Path(DRAFT).stem if self.is_several else DRAFT
        return ["shoal", "publish", self.table_in_commands, "-p", POLICY, "-o", output]

    @property
    def policy_text(self) -> str:
        """policy.yaml as it is; empty before there is one."""
        return files.text_of(self.folder / POLICY) or ""

    @property
    def policy(self) -> Context:
        """Its content, empty where it can't be understood: `shoal.check` says why."""
        try:
            return read(self.policy_text)
        except InputError:
            return {}

    @property
    def attributes(self) -> Context:
        """The settings of each column that the policy names, of several tables in one list."""
        columns: Context = flat(self.policy)["attributes"]
        return columns

    @property
    def is_several(self) -> bool:
        """Whether the policy is about several tables."""
        return bool(self.policy.get("tables"))

    @property
    def people_name(self) -> str:
        """What the table of people is called where it comes from."""
        return str(self.about.get("people") or PEOPLE)

    @property
    def quasi(self) -> list[str]:
        """The columns that others could know."""
        return [name for name, own in self.attributes.items() if own.get("role") == "quasi"]

    @property
    def required_k(self) -> int:
        """The k that the policy promises; 0 without one."""
        promises = self.policy.get("promises") or ()
        return next((p["k"] for p in promises if p.get("model") == "k-anonymity"), 0)

    @property
    def columns(self) -> list[str]:
        """The columns of the table, in its order."""
        return self.about.get("columns") or []

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each column, from 1, by which addresses name it."""
        return {name: number for number, name in enumerate(self.columns, 1)}

    @property
    def places(self) -> list[Context]:
        """The streams and ledgers that are watched."""
        return self.about.get("places") or []

    @property
    def policy_sha(self) -> str:
        return sha256(self.policy_text)

    def texts(self) -> dict[str, str | None]:
        """Every file that the history is about, by its name in the project."""
        found: dict[str, str | None] = dict.fromkeys((PROJECT, POLICY, RELEASE))
        hierarchies = sorted((self.folder / "hierarchies").glob("*.csv"))
        found |= {f"hierarchies/{path.name}": None for path in hierarchies}
        return {name: files.text_of(self.folder / name) for name in found}

    @property
    def looked_at(self) -> list[str]:
        """The screens that somebody has looked at with this table."""
        tables: dict[str, list[str]] = files.json_of(self.folder / ".ui" / "looked.json", {})
        return tables.get(self.table_in_commands, [])

    def look_at(self, screen: str) -> None:
        """Remembers that somebody looks at a screen."""
        if screen not in (seen := self.looked_at):
            with suppress(InputError):  # a full disk: whatever matters says so itself
                path = files.made(self.folder / ".ui") / "looked.json"
                files.write(path, json.dumps({self.table_in_commands: [*seen, screen]}))

    # Edits

    def edit(self, sentence: str, changes: Mapping[str, str | None], base: str | None) -> None:
        """Writes files and a history entry; raises Stale where something would change and
        policy.yaml is not `base` any more.

        changes: new texts by name, None for a file that goes. base: the hash that the edit was
        made on, None where it does not matter.
        """
        self.notice_hand_edits()
        before = {name: files.text_of(self.folder / name) for name in changes}
        changed = {n: (before[n], text) for n, text in changes.items() if before[n] != text}
        if not changed:
            return
        if base is not None and base != self.policy_sha:
            raise Stale
        written_by_hand = before.get(POLICY) or ""
        is_commented = files.has_comments(written_by_hand)
        if POLICY in changed and not is_ours(written_by_hand) and is_commented:
            # the history keeps somebody's comments as they are; what the page writes has none
            kept = files.made(self.history.folder) / f"by-hand-{sha256(written_by_hand)[:12]}.yaml"
            if not kept.exists():
                files.write(kept, written_by_hand)
        self._write(changed)
        self.history.add(sentence, changed)
        self._remember()

    def _write(self, changed: Mapping[str, tuple[str | None, str | None]]) -> None:
        files.made(self.history.folder)
        for name, (_, text) in changed.items():
            if text is None:
                (self.folder / name).unlink(missing_ok=True)
            else:
                files.made((self.folder / name).parent)
                files.write(self.folder / name, text)

    def edit_policy(self, sentence: str, content: Mapping[str, Any], base: str | None) -> None:
        """The policy in place of the present one, as `edit`."""
        self.edit(sentence, {POLICY: written(content)}, base)

    def note(self, sentence: str) -> Entry:
        """An event in the history that changes no file, such as a draft that was made."""
        files.made(self.history.folder)
        return self.history.add(sentence, {})

    def text_at(self, sha: str) -> str | None:
        """The policy that had this hash, where the history knows it."""
        if sha == self.policy_sha:
            return self.policy_text
        texts = self.texts()
        for entry in self.history.chain():
            try:
                found = self.history.way_back(texts, entry.parent).get(POLICY)
            except InputError:
                return None
            if found is not None and sha256(found) == sha:
                return found
        return None

    def undo(self, to: int | None = None) -> str | None:
        """Back to the state before the last edit, or of entry `to`, by a new entry, whose sentence
        is returned; None where there is nothing to undo.
        """
        self.notice_hand_edits()
        last = self.history.last()
        if last is None:
            return None
        target = last.parent if to is None else to
        now = self.texts()
        back = self.history.way_back(now, target)
        if not back:
            return None
        changed = {name: (now.get(name), text) for name, text in back.items()}
        self._write(changed)
        sentence = (
            gettext("undone: {change}", change=last.sentence)
            if target == last.parent
            else gettext("undone, back to {or_}", or_=target or gettext("the start"))
        )
        self.history.add(sentence, changed, returns_to=target)
        self._remember()
        return sentence

    def notice_hand_edits(self) -> bool:
        """A file that is not as the page has left it becomes an entry of its own."""
        seen: dict[str, str | None] = files.json_of(self.folder / ".ui" / "seen.json", {})
        now = {name: text for name, text in self.texts().items() if name != PROJECT}
        changed = {n: (seen.get(n), text) for n, text in now.items() if seen.get(n) != text}
        if not changed:
            return False
        files.made(self.history.folder)
        self.history.add(gettext("{changed}: edited by hand", changed=", ".join(changed)), changed)
        self._remember()
        return True

    def _remember(self) -> None:
        kept = {name: text for name, text in self.texts().items() if text is not None}
        files.write(files.made(self.folder / ".ui") / "seen.json", json.dumps(kept))

    # Drafts

    @property
    def runs(self) -> list[Run]:
        """Every draft, the last one first."""
        found = [p for p in (self.folder / "runs").glob("*") if RUN.fullmatch(p.name)]
        return sorted((Run(int(p.name), p) for p in found), key=lambda run: -run.number)

    @property
    def last_draft(self) -> Run | None:
        """The last draft that is done."""
        return next((run for run in self.runs if run.state == "done"), None)

    def run(self, name: str) -> Run:
        """The draft of this number; raises NotThere."""
        if not RUN.fullmatch(name) or not (self.folder / "runs" / name).is_dir():
            raise files.NotThere
        return Run(int(name), self.folder / "runs" / name)

    def new_run(self) -> Run:
        runs = files.made(self.folder / "runs")
        number = max((run.number for run in self.runs), default=0) + 1
        return Run(number, files.made(runs / f"{number:04d}"))

    def sweep(self) -> None:
        """What a killed server or job has left goes: drafts without a certificate."""
        for run in self.runs:
            if run.state == "interrupted":
                clear_run(run)
        for draft in self.folder.glob(".*.draft"):
            draft.unlink(missing_ok=True)
        for folder in (self.folder / "releases").glob(".*.draft"):
            shutil.rmtree(folder, ignore_errors=True)
        for folder in (self.folder / ".ui").glob(f"{ASKED}*"):
            shutil.rmtree(folder, ignore_errors=True)

    # One server

    def lock(self) -> None:
        """This process has the project until it ends; raises Busy where another one has it."""
        path = files.made(self.folder / ".ui") / "lock"
        try:
            handle = os.open(path, os.O_CREAT | os.O_RDWR, files.PRIVATE_FILE)
        except OSError as failed:
            raise InputError(
                f"project '{self.name}': can't be written to ({failed.strerror}); choose a folder"
                " of yours"
            ) from None
        if not take_lock(handle):
            os.close(handle)
            raise Busy(path.read_text())
        self._lock = handle

    def say_where(self, about: Mapping[str, Any]) -> None:
        """Writes into the lock what a second `shoal ui` needs to know."""
        assert self._lock is not None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, json.dumps(dict(about)).encode(), 0)

    def unlock(self) -> None:
        if self._lock is not None:
            (self.folder / ".ui" / "open.html").unlink(missing_ok=True)
            with suppress(OSError):
                os.ftruncate(self._lock, 0)
            os.close(self._lock)  # the file stays: another server may have it open and be waiting
            self._lock = None


def clear_run(run: Run) -> None:
    """Takes away what an unfinished draft holds of the table; what was asked and said stays."""
    for path in run.folder.iterdir():
        if path.name in ("run.json", "policy.yaml", EVENTS):
            continue
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
