"""Work that fails, or dies, at each of its steps in turn, without luck."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

STEPS = ("fsync", "rename", "replace", "mkdir", "unlink", "chmod")


class Killed(BaseException):
    """The process is gone: no code of ours catches it, and nothing that follows in it is done."""


def failing_at_every_step(
    failure: Callable[[], BaseException], monkeypatch, steps: tuple[str, ...] = STEPS
) -> Iterator[AbstractContextManager[list[str]]]:
    """In turn, the work in which the first, second, ... step fails before it does anything; at last
    one in which none does. Each gives the names of the steps that were tried.
    """
    for instant in range(200):
        tried: list[str] = []
        yield _failing_at(instant, failure, monkeypatch, steps, tried)
        if len(tried) <= instant:
            return
    raise AssertionError("the work takes fewer steps than that")


@contextmanager
def _failing_at(instant, failure, monkeypatch, steps, tried) -> Iterator[list[str]]:
    def counted(name: str, call):
        def step(*arguments, **options):
            tried.append(name)
            if len(tried) == instant + 1:
                raise failure()
            return call(*arguments, **options)

        return step

    with monkeypatch.context() as patched:
        for name in steps:
            patched.setattr(os, name, counted(name, getattr(os, name)))
        if failure is Killed:  # what a killed process leaves is not tidied up
            patched.setattr(shutil, "rmtree", lambda *a, **o: None)
        yield tried


def killed_at(instant: int, monkeypatch, session: type, work: Callable[[], object]) -> int:
    """How many instants there were, before and behind each step on disk and each statement; raises
    Killed at the one that is named.

    session: the class of the sessions with the database.
    """
    count = 0

    def dies(call):
        def counted(*arguments, **options):
            nonlocal count
            count += 1
            if count == 2 * instant - 1:
                raise Killed
            result = call(*arguments, **options)
            count += 1
            if count == 2 * instant:
                raise Killed
            return result

        return counted

    with monkeypatch.context() as patched:
        for name in ("fsync", "rename", "replace", "unlink"):
            patched.setattr(os, name, dies(getattr(os, name)))
        for name in ("execute", "insert", "commit", "run_deferred"):
            patched.setattr(session, name, dies(getattr(session, name)))
        patched.setattr(shutil, "rmtree", lambda *a, **o: None)
        work()
    return count


def dying(call, at: int, behind: bool, death: type[BaseException] = Killed):
    """The function, during whose call of this number the process dies: before or behind it."""
    calls = 0

    def counted(*arguments, **named):
        nonlocal calls
        calls += 1
        if calls == at and not behind:
            raise death
        result = call(*arguments, **named)
        if calls == at:
            raise death
        return result

    return counted
