"""The helpers of the server: the desk, which holds the table, and one job at a time.

The server asks in JSON lines and keeps counts, never rows. Both helpers end when it ends.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import IO, Any, TypeAlias

from shoal.data.language import gettext
from shoal.errors import InputError, ShoalError

LONGEST_LINE = 256 << 20
PATIENCE = 0.1  # seconds that a page waits for figures of a busy desk; then it shows without
GRACE = 2.0  # seconds between asking a job to end and ending it
KEPT_LOOKS = 64
KEPT_JOBS = 20

Message: TypeAlias = dict[str, Any]
"""What the server and a process of its own say to each other, in a line of JSON each."""


class Refused(Exception):
    """A helper answered with an error, which holds one sentence and maybe more findings."""

    def __init__(self, said: Message) -> None:
        super().__init__(said["message"])
        self.kind, self.message = said["error"], said["message"]
        self.findings: list[str] = said["findings"]


async def _started(module: str) -> Process:
    silent = None if os.environ.get("SHOAL_DEBUG") == "1" else asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, stdin=PIPE, stdout=PIPE, stderr=silent, limit=LONGEST_LINE
    )


class Desk:
    """Answers looks, one after the other; starts anew where it died.

    What it answers is kept where it holds counts only, so that a page that is shown again asks
    nothing.
    """

    def __init__(self) -> None:
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._known: dict[str, asyncio.Task[Message]] = {}
        self._since: dict[asyncio.Task[Message], float] = {}
        self._stage: Message = {}

    @property
    def waiting(self) -> Message:
        """How far a page's looks are that have taken more than a second; empty where none has."""
        seconds = monotonic() - min(self._since.values(), default=monotonic())
        return {**self._stage, "seconds": int(seconds)} if seconds > 1 else {}

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def look(self, name: str, **asked: Any) -> Message:
        """What a look finds, for one answer; raises Refused."""
        async with self._turn:
            return await self._asked({"look": name, **asked})

    def kept(self, name: str, stamp: Any = None, **asked: Any) -> asyncio.Task[Message]:
        """A look that is asked once and then remembered, for as long as `stamp` stays."""
        key = json.dumps([name, stamp, asked], sort_keys=True, default=str)
        task = self._known.get(key)
        if task is None or (task.done() and _may_end_otherwise(task)):
            task = asyncio.ensure_future(self.look(name, **asked))
            self._since[task] = monotonic()
            task.add_done_callback(_seen)
            task.add_done_callback(self._since.pop)
            self._known[key] = task
            while len(self._known) > KEPT_LOOKS:
                self._known.pop(next(iter(self._known)))
        return task

    async def soon(self, name: str, stamp: Any = None, **asked: Any) -> Message | None:
        """A kept look; None where it takes longer than a page waits. Raises Refused.

        A page asks for several, one after the other: its patience is counted from the oldest that
        is still unanswered, so that it waits once for a busy desk and not once for each.
        """
        task = self.kept(name, stamp, **asked)
        left = PATIENCE + min(self._since.values(), default=monotonic()) - monotonic()
        done, _ = await asyncio.wait({task}, timeout=max(left, 0.0))
        return task.result() if done else None

    def forget(self) -> None:
        """Files have changed: every look is asked anew."""
        self._known.clear()

    async def _asked(self, message: Message) -> Message:
        if self._process is None or self._process.returncode is not None:
            self._process = await _started("shoal.web.desk")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer: Message | None = None
        try:
            self._process.stdin.write(json.dumps(message, default=str).encode() + b"\n")
            await self._process.stdin.drain()
            async for line in self._process.stdout:
                answer = json.loads(line)
                if "stage" not in answer:
                    break
                self._stage, answer = answer, None
        except (OSError, ConnectionError):
            answer = None
        except asyncio.CancelledError:
            self.stop()  # its answer would be taken for that of the next look
            raise
        finally:
            self._stage = {}
        if answer is None:
            await self._process.wait()
            raise Refused({
                "error": "MemoryError",
                "message": "The table's process has ended, maybe for want of memory. Load the page"
                " again, or take a sample of the table.",
                "findings": [],
            })  # fmt: skip
        if "error" in answer:
            raise Refused(answer)
        return answer

    def stop(self) -> None:
        """Ends the process; the next look starts another one."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def close(self) -> None:
        self.stop()
        for task in self._known.values():
            task.cancel()
        await asyncio.gather(*self._known.values(), return_exceptions=True)
        if self._process is not None:
            await self._process.wait()


def _may_end_otherwise(task: asyncio.Task[Message]) -> bool:
    """Not where it answered, or said what table or policy lack."""
    why = asyncio.CancelledError() if task.cancelled() else task.exception()
    return why is not None and getattr(why, "kind", "bug") in ("bug", "MemoryError")


def _seen(task: asyncio.Task[Message]) -> None:
    if not task.cancelled():
        task.exception()  # whoever shows the page says it


@dataclass
class Job:
    """Something long: what was asked, every event so far, and how it ended.

    state: waiting, running, done, refused, stopped, failed. events: in order, numbered from 1.
    """

    id: str
    kind: str
    asked: Message
    state: str = "waiting"
    events: list[Message] = field(default_factory=list)
    result: Message = field(default_factory=dict)
    begun: float = 0.0
    process: Process | None = field(default=None, repr=False)
    changed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    @property
    def is_over(self) -> bool:
        return self.state not in ("waiting", "running")

    @property
    def stage(self) -> str:
        stages = (e["stage"] for e in reversed(self.events) if e.get("stage"))
        return next(stages, gettext("starting"))

    @property
    def measured(self) -> tuple[int | None, int | None]:
        """How many units of the stage are done, of how many; None where nobody can tell."""
        last: Message = next((e for e in reversed(self.events) if e.get("stage")), {})
        return last.get("done"), last.get("total")

    def tell(self, event: Message) -> None:
        self.events.append({"id": len(self.events) + 1, **event})
        self.changed.set()
        self.changed = asyncio.Event()

    async def events_after(self, after: int) -> AsyncIterator[Message]:
        """The events after this one, those to come included, until the job is over."""
        while True:
            while after < len(self.events):
                after += 1
                yield self.events[after - 1]
            if self.is_over:
                return
            await self.changed.wait()


class Jobs:
    """Jobs, one at a time; others wait in sight.

    ended: is called with every job that is over, before anybody sees that it is.
    """

    def __init__(self, ended: Callable[[Job], None]) -> None:
        self._ended = ended
        self._queue: deque[Job] = deque()
        self._all: dict[str, Job] = {}
        self._worker: asyncio.Task[None] | None = None
        self._count = 0

    @property
    def open(self) -> list[Job]:
        """The job that runs and those that wait."""
        return [job for job in self._all.values() if not job.is_over]

    def find(self, id: str) -> Job | None:
        return self._all.get(id)

    def last(self, kind: str) -> Job | None:
        return next((j for j in reversed(self._all.values()) if j.kind == kind), None)

    def failure(self, kind: str, run: str) -> Mapping[str, Any] | None:
        """Why the last job of a kind failed, where it was about this run."""
        job = self.last(kind)
        has_failed = job is not None and job.state in ("refused", "failed")
        return job.result if job and has_failed and job.asked["run"] == run else None

    def start(self, kind: str, **asked: Any) -> Job:
        self._count += 1
        job = Job(str(self._count), kind, asked)
        self._all[job.id] = job
        for old in [j for j in self._all.values() if j.is_over][:-KEPT_JOBS]:
            self._all.pop(old.id)
        self._queue.append(job)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.ensure_future(self._work())
        return job

    async def cancel(self, job: Job) -> None:
        """Ends a job within three seconds, whatever it does."""
        if job.is_over:
            return
        was_running = job.state == "running"
        job.state = "stopped" if not was_running else job.state
        job.asked["is_cancelled"] = True
        if job.process is not None and job.process.returncode is None:
            await end(job.process)
        if not was_running:
            self._over(job, "stopped")
        while not job.is_over:
            await job.changed.wait()

    async def close(self) -> None:
        for job in self.open:
            await self.cancel(job)

    async def _work(self) -> None:
        while self._queue:
            job = self._queue.popleft()
            if job.is_over:
                continue
            job.state, job.begun = "running", monotonic()
            try:
                state = await self._run(job)
            except OSError as failed:
                job.result = {"message": f"it could not start ({failed.strerror})", "findings": []}
                state = "failed"
            self._over(job, state)

    def _over(self, job: Job, state: str) -> None:
        job.state = state
        try:
            self._ended(job)
        except (InputError, OSError) as failed:  # a full disk: the next job is not to wait for it
            why = failed.args[0] if isinstance(failed, InputError) else failed.strerror
            job.state, job.result = "failed", {"message": str(why), "findings": []}
        job.tell({"state": job.state})

    async def _run(self, job: Job) -> str:
        job.process = process = await _started("shoal.web.job")
        assert process.stdin is not None
        assert process.stdout is not None
        if job.asked.get("is_cancelled"):
            await end(process)
            return "stopped"
        asked = {"kind": job.kind, **job.asked}
        with suppress(OSError, ConnectionError):
            process.stdin.write(json.dumps(asked, default=str).encode() + b"\n")
            await process.stdin.drain()
        answer: Message = {}
        async for line in process.stdout:
            message = json.loads(line)
            if "stage" in message or "part" in message:
                job.tell(message)
            else:
                answer = message
        process.stdin.close()
        status = await process.wait()
        if job.asked.get("is_cancelled"):
            return "stopped"
        if not answer:
            job.result = {"message": _died(status, job.stage), "findings": []}
            return "failed"
        job.result = answer
        if "error" in answer:
            return "failed" if answer["error"] in ("bug", "MemoryError") else "refused"
        return "done"


def _died(status: int, stage: str) -> str:
    if status == -signal.SIGKILL:
        return f"It was ended from outside, most likely for want of memory, at “{stage}”."
    return f"Its process ended at “{stage}” and said nothing."


async def end(process: Process) -> None:
    """Asks a process to end, and ends it two seconds later."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), GRACE)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


# The other end of a line: what a process of its own says to the server.


class Line:
    """Standard input and output as messages; what libraries print goes nowhere near them."""

    def __init__(self) -> None:
        self._out: IO[bytes] = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        """Ends the process where nobody listens any more."""
        data = json.dumps(message, allow_nan=False, default=_plain).encode() + b"\n"
        try:
            with self._lock:
                self._out.write(data)
        except OSError:
            os._exit(1)

    @staticmethod
    def messages() -> Iterator[Message]:
        for line in sys.stdin.buffer:
            yield json.loads(line)


def end_with_the_server() -> None:
    """Ends this process when its input closes, as it does when the server dies."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def said(error: Exception) -> Message:
    """An error as the page shows it; of a bug only its kind, since its text may hold values."""
    if isinstance(error, ShoalError):
        message, kind = str(error.args[0]), type(error).__name__
        return {"error": kind, "message": message, "findings": error.said[1:]}
    if isinstance(error, MemoryError):
        return {"error": "MemoryError", "message": "It ran out of memory.", "findings": []}
    if os.environ.get("SHOAL_DEBUG") == "1":
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    message = f"internal error ({type(error).__name__}); run the command with SHOAL_DEBUG=1"
    return {"error": "bug", "message": message, "findings": []}


def _plain(value: object) -> object:
    """NumPy's numbers and arrays as Python's."""
    for name in ("item", "tolist", "isoformat"):
        if hasattr(value, name):
            return getattr(value, name)()
    return str(value)
