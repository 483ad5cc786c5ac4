"""Appends that die before or behind each file operation and each statement, without luck."""

import os
import shutil
from collections.abc import Callable


class Killed(BaseException):
    """The process ends here."""


def killed_at(instant: int, monkeypatch, session: type, work: Callable[[], object]) -> int:
    """How many instants there were; raises Killed at the one that is named.

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
        # what a killed process leaves is not tidied up
        patched.setattr(shutil, "rmtree", lambda *a, **o: None)
        work()
    return count
