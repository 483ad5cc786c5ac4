"""What the routes share: the project, the door, the desk, the jobs, and what to tell the person."""

import asyncio
import json
import secrets
import shlex
import shutil
import time
from collections import deque
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from shoal.data.findings import some_named
from shoal.data.language import gettext
from shoal.errors import InputError
from shoal.policy.model import header_of
from shoal.web import guard, policy_text, sign_off
from shoal.web.edits import Form, one, options_of
from shoal.web.policy_text import Context, changed_lines, sha256, stamp_of, written
from shoal.web.project import DRAFT, EVENTS, PROJECT, Project, Run, clear_run
from shoal.web.several import column_names, flat, people_among
from shoal.web.work import Desk, Job, Jobs

MOST_STREAMS = 8
ONCE_KEPT = 200
KS = (3, 5, 7, 10, 15, 20, 30, 50)
LARGE = "8G"  # in the command for a table that is too large here
COMMENT = gettext(
    "policy.yaml has comments. They stay in history/ as you wrote them; the page writes none."
)


class Server:
    """One project that one person looks at."""

    def __init__(self, project: Project, door: guard.Door) -> None:
        self.project, self.door = project, door
        self.desk = Desk()
        self.rules = Desk()  # checks edits without the table, so that none waits for a count
        self.jobs = Jobs(self._job_ended)
        self.notices: deque[str] = deque(maxlen=3)
        self.streams = 0
        self.too_large: Context = {}  # of a table that could not be opened
        self.grave: list[Context] = []  # the findings of the last count
        self.used = time.monotonic()
        self._once: dict[str, str] = {}
        self._shut = asyncio.Event()

    # The table

    @property
    def read_options(self) -> Context:
        """How the table is read, as the policy or, before there is one, the choice says."""
        read = self.project.policy.get("read")
        return dict(read) if isinstance(read, dict) else {}

    def table_key(self) -> Context | None:
        """What identifies the table to a look; None where there is none (any more)."""
        path = self.project.table
        if path is None or not path.exists():
            return None
        every, several = self.sample_of, bool(self.project.about.get("several"))
        more = {"several": True} if several else {"every": every} if every else {}
        return {"table": str(path), **more}

    def require_table(self) -> Context:
        """The key of the table; raises InputError where none is open."""
        key = self.table_key()
        if key is None:
            raise InputError("table: none is open; open one first")
        return key

    @property
    def sample_of(self) -> int:
        """Of how many rows one is looked at, of a table that is too large; 0 where all are."""
        return int(self.project.about.get("sample_of") or 0)

    def require_whole(self) -> None:
        """Raises InputError where no table is open, or only a sample of it."""
        self.require_table()
        if self.sample_of:
            command = ["shoal", "publish", self.project.table_in_commands, "-p", "policy.yaml"]
            raise InputError(
                "sample: is for setting up only; make the release of the whole table from a shell:"
                f" {shlex.join(command)} -o {DRAFT} --memory {LARGE}"
            )

    def stamp(self) -> list[int]:
        """What changes when the table's file does."""
        path = self.project.table
        return [] if path is None else stamp_of(path)

    async def policy_look(self, name: str) -> Context | None:
        """A kept look at the table by the policy; None while it is counted. Raises Refused."""
        key = self.table_key()
        if key is None:
            return None
        asked = {**key, "policy": self.project.policy, "base": str(self.project.folder)}
        return await self.desk.soon(name, stamp=[self.stamp(), self.hierarchies_sha()], **asked)

    def hierarchies_sha(self) -> str:
        """What changes when a hierarchy of the project does."""
        texts = {n: t for n, t in self.project.texts().items() if n.startswith("hierarchies/")}
        return sha256(json.dumps(texts, sort_keys=True))

    async def choose_table(
        self, path: Path, read: Context, every: int = 0, several: bool = False
    ) -> None:
        """Opens a table and, where no policy fits it, has one proposed. Raises Refused.

        every: of how many rows one is to be looked at; a table that is too large asks for it.
        several: whether all sheets of a workbook or files of a folder are tables about the same
            people.
        """
        more = {"several": True} if several else {"every": every} if every else {}
        key = {"table": str(path), "read": read, **more}
        found = await self.desk.look("open", **key)
        self.too_large = {}
        if "too_large" in found:
            self.too_large = {**found["too_large"], "path": str(path), "read": read}
            return
        self.grave, policy = [], self.project.policy
        people = people_among([*found["tables"]], policy) if several else None
        proposed: Context = {}
        key["read"], read = found["read"], {**found["read"]}
        if several and people is None:
            proposed = await self.desk.look("propose", **key)
            people = proposed["people"]
        if several:
            read |= header_of(read.pop("header"), str(people))
        columns = column_names(found["tables"], str(people)) if several else found["columns"]
        about = {
            **self.project.about,
            "version": 1,
            "table": self.project.in_commands(path),
            "rows": found["rows"],
            "sample_of": every or None,
            "rows_in_all": found.get("rows_in_all"),
            "several": several or None,
            "people": people,
            "tables": len(found["tables"]) if several else None,
            "columns": columns,
            "bytes": found["bytes"],
            "sha256": found["sha256"],
            "stamp": stamp_of(path),
        }
        sentence = gettext("table: {name}", name=path.name)
        known = {*self.project.attributes}
        changes = {}
        if proposed or self.project.is_several != several or not known or not known <= {*columns}:
            proposed = proposed or await self.desk.look("propose", **key)
            policy = proposed["content"]
            about["reasons"], about["person"] = proposed["reasons"], None
            sentence = gettext(
                "Proposed by Shoal, {attributes} roles", attributes=len(flat(policy)["attributes"])
            )
            changes = {"policy.yaml": written(policy)}
            if lost := some_named(sorted(known - {*columns})):
                said = gettext("This table has no {names}: a new policy was proposed.", names=lost)
                self.notices.append(f"{said} {gettext('Undo brings back what was before.')}")
        elif read != self.read_options:
            changes = {"policy.yaml": written({**policy, "read": read})}
        self.project.edit(sentence, {PROJECT: written(about), **changes}, None)

    def remember(self, sentence: str, **answers: Any) -> None:
        """Answers that no policy holds, in project.yaml."""
        self.project.edit(sentence, {PROJECT: written({**self.project.about, **answers})}, None)

    # Jobs

    def asked_of(self, run: Run) -> Context:
        """What a job or a look needs of a draft: its policy, with the hierarchies it had."""
        base = sign_off.base_of(self.project, run.policy, run.folder)
        several = {"several": True} if run.policy.get("tables") else {}
        return {"table": str(self.project.table), "policy": run.policy, "base": base, **several}

    def start(self, kind: str, once: str, **asked: Any) -> Job:
        """A job, one for each form that was shown, however often that is sent."""
        if (known := self.was_sent(once)) is not None:
            return known
        job = self.jobs.start(kind, **asked)
        if once:
            self._once[once] = job.id
            while len(self._once) > ONCE_KEPT:
                self._once.pop(next(iter(self._once)))
        return job

    def was_sent(self, once: str) -> Job | None:
        return self.jobs.find(self._once[once]) if once in self._once else None

    def start_draft(
        self, form: Form, policy: Context, text: str, why: str = "", tried: Any = None
    ) -> Job:
        """A draft in a new folder; raises InputError. why, tried: of a draft that no edit made."""
        once, options = one(form, "once"), options_of(form)
        if (known := self.was_sent(once)) is not None:
            return known
        self.require_whole()
        sign_off.ask_for_releases(self.project)
        run = self.project.new_run()
        policy_text.write(run.folder / "policy.yaml", text)
        sign_off.take(self.project, run.folder)
        about = {
            "policy_sha": sha256(text),
            "table_sha": self.project.about.get("sha256"),
            "hierarchies_sha": self.hierarchies_sha(),
            "at": datetime.now().astimezone().isoformat(timespec="seconds"),
            "why": why,
            "tried": tried,
            "carried_over": sign_off.carried_over(self.project),
        }
        policy_text.write(run.folder / "run.json", json.dumps(about))
        return self.start(
            "draft",
            once,
            run=run.name,
            folder=str(run.folder),
            table=str(self.project.table),
            policy=policy,
            base=sign_off.base_of(self.project, policy, run.folder),
            options=options,
            key=str(self.people_key),
        )

    def _job_ended(self, job: Job) -> None:
        if job.kind == "draft":
            self._draft_ended(job)
        elif job.kind == "compare":
            self._comparison_ended(job)
        elif job.kind == "release":
            self._release_ended(job)
        elif job.state == "done" and job.kind == "marginal":
            run = self.project.run(job.asked["run"])
            policy_text.write(run.folder / "prices.json", json.dumps(job.result["prices"]))
        elif job.kind == "republish" and job.state == "done":
            self.notices.append(_republished(job.result))
        elif job.kind != "verify" and job.state != "done":
            what = gettext("Stopped.") if job.state == "stopped" else str(job.result.get("message"))
            self.notices.append(gettext("{what} Nothing was written.", what=what))

    def _release_ended(self, job: Job) -> None:
        """The whole folder gets its name by one rename, or goes."""
        draft, run = Path(job.asked["draft"]), self.project.run(job.asked["run"])
        job.asked.pop("passphrase", None)
        # what is about to leave is what was signed off, and nobody has refused it since
        is_same = sign_off.is_copy(run, draft / run.data.name) and not self.stale_parts(run)
        if job.state != "done" or not is_same or not sign_off.standing(self.project, run)[0]:
            shutil.rmtree(draft, ignore_errors=True)
            if job.state == "done":
                raise InputError(gettext("something was changed meanwhile"))
            return
        name = sign_off.next_release(draft.parent)
        kept = self.released_people() / f"{name}.npz"
        try:
            policy_text.write(kept.with_suffix(".draft"), run.name)
            if (run.folder / sign_off.PEOPLE).is_file():
                # first, as no release may leave that later drafts are not judged together with
                shutil.copyfile(run.folder / sign_off.PEOPLE, kept)
                kept.chmod(policy_text.PRIVATE_FILE)
        except (OSError, InputError):
            kept.unlink(missing_ok=True)
            shutil.rmtree(draft, ignore_errors=True)
            raise
        draft.rename(draft.parent / name)
        self.project.note(
            gettext("Draft {number} released: releases/{name}", number=run.number, name=name)
        )
        self.notices.append(gettext("Released: releases/{name}/", name=name))

    @property
    def people_key(self) -> Path:
        """Where the key is by which people are known again in all that is kept of them."""
        return self.project.folder / ".ui" / "people.key"

    def released_people(self) -> Path:
        """Where the people of every release are kept, as `sign_off` keeps them."""
        return policy_text.made(self.project.folder / sign_off.KNOWN_RELEASES)

    def _comparison_ended(self, job: Job) -> None:
        """Keeps what was measured, whatever ended it."""
        rows = self._rows_about(job.asked["about"], job)
        self.keep_rows(job.asked["about"], rows)
        shutil.rmtree(job.asked["taken"], ignore_errors=True)
        if job.state == "stopped":
            self.notices.append(
                gettext("Stopped. {rows} measured releases are kept.", rows=len(rows))
            )
        elif job.state != "done":
            self.notices.append(str(job.result.get("message")))

    # What comparisons have measured, kept beside the project so that they can go on later

    def asked_ks(self) -> list[int]:
        own = self.project.required_k
        return sorted({*KS, *([own] if own >= 2 else [])})

    def comparison_key(self) -> str:
        """What measured points are about: the policy but for its k and method, and the table."""
        text = written(dict(sorted(but_k(self.project.policy).items())))
        return sha256(json.dumps([text, self.stamp(), self.hierarchies_sha()]))

    def measured_rows(self) -> list[Context]:
        """Every row that was measured, those of a comparison that runs included."""
        key, jobs = self.comparison_key(), self.jobs.open
        own = [j for j in jobs if j.kind == "compare" and j.asked.get("about") == key]
        rows = self._rows_about(key, *own)
        return sorted(rows, key=lambda row: (row["k"], row["loss"] is None, row["loss"] or 0))

    def _rows_about(self, key: str, *jobs: Job) -> list[Context]:
        """The rows that are kept, and in place of them those that comparisons have measured."""
        kept: dict[str, list[Context]] = policy_text.json_of(self._compared, {})
        new = [event["row"] for job in jobs for event in job.events if "row" in event]
        rows = {(row["label"], row["k"]): row for row in (*kept.get(key, ()), *new)}
        return list(rows.values())

    def keep_rows(self, key: str, rows: list[Context]) -> None:
        kept: dict[str, list[Context]] = policy_text.json_of(self._compared, {})
        kept[key] = rows
        policy_text.write(self._compared, json.dumps(dict(list(kept.items())[-10:])))

    @property
    def _compared(self) -> Path:
        return policy_text.made(self.project.folder / ".ui") / "compared.json"

    def _draft_ended(self, job: Job) -> None:
        run = self.project.run(job.asked["run"])
        if job.state == "stopped":
            shutil.rmtree(run.folder, ignore_errors=True)
            self.notices.append(gettext("Stopped. Nothing was written."))
            return
        about = {
            **run.about,
            "state": job.state,
            "seconds": round(time.monotonic() - job.begun, 1),
            "message": job.result.get("message"),
            "kind": job.result.get("error"),
            "findings": job.result.get("findings", []),
        }
        with suppress(InputError):  # a full disk: what is missing says so itself
            policy_text.write(run.folder / "run.json", json.dumps(about))
            events = "".join(json.dumps(event) + "\n" for event in job.events)
            policy_text.write(run.folder / EVENTS, events)
            if job.state == "done":
                self.project.note(gettext("Draft {number} made", number=run.number))
        if job.state != "done":
            clear_run(run)

    # The frame

    def new_once(self) -> str:
        return secrets.token_urlsafe(12)

    def stale_parts(self, run: Run) -> list[str]:
        """What of policy, hierarchies and table is not as the draft had it."""
        about, now = run.about, self.project
        parts = {
            "policy": about.get("policy_sha") != now.policy_sha,
            "hierarchies": about.get("hierarchies_sha") != self.hierarchies_sha(),
            "table": about.get("table_sha") != now.about.get("sha256")
            or self.stamp() != now.about.get("stamp")
            or bool(self.sample_of),
        }
        return [name for name, differs in parts.items() if differs]

    def is_of_table(self, run: Run) -> bool:
        """Whether a draft is done, and of the table and hierarchies as they are."""
        return run.state == "done" and not set(self.stale_parts(run)) - {"policy"}

    def policy_lines(self) -> tuple[list[tuple[str, str]], int]:
        """The policy, with the lines that have changed since the last draft; how many have."""
        text, run = self.project.policy_text, self.project.last_draft
        before = (run.policy_text if run else "") or text
        lines = changed_lines(before, text)
        return lines, sum(1 for mark, _ in lines if mark == "+")

    # The end

    def quit(self) -> None:
        self._shut.set()

    async def ended(self) -> None:
        await self._shut.wait()

    async def close(self) -> None:
        await self.jobs.close()
        await self.desk.close()
        await self.rules.close()
        self.door.close()


def but_k(policy: Context) -> Context:
    """A policy but for its k and method."""
    promises = [{**p, "k": 0} if "k" in p else p for p in policy.get("promises") or ()]
    others = {key: value for key, value in policy.items() if key != "method"}
    return {**others, "promises": promises}


def _republished(done: Context) -> str:
    waiting = (
        gettext(" {waiting:,} records wait for company.", waiting=done["waiting"])
        if done["waiting"]
        else ""
    )
    if done["release"] is None:
        return gettext("Accepted; no new release.{waiting}", waiting=waiting)
    return gettext(
        "Release {release} is published. Note the new hash.{waiting}",
        release=done["release"],
        waiting=waiting,
    )
