"""The desk: a process that holds the table and answers looks. The server talks to it in JSON.

Its lines (S11), and its end when the server ends, are those of a job's process, too.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import IO, Any

from shoal.data import cores
from shoal.errors import ShoalError


class Line:
    """Standard input and output as messages; what libraries print goes nowhere near them."""

    def __init__(self) -> None:
        self._out: IO[bytes] = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        """Ends the process where nobody listens any more."""
        data = json.dumps(message, allow_nan=False, default=_plain).encode() + b"\n"
        try:
            with self._lock:
                self._out.write(data)
        except OSError:
            os._exit(1)

    @staticmethod
    def messages() -> Iterator[dict[str, Any]]:
        for line in sys.stdin.buffer:
            yield json.loads(line)


def end_with_the_server() -> None:
    """Ends this process when its input closes, as it does when the server dies."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def said(error: Exception) -> dict[str, Any]:
    """An error as the page shows it; of a bug only its kind, since its text may hold values."""
    if isinstance(error, ShoalError):
        return {
            "error": type(error).__name__,
            "message": str(error.args[0]),
            "findings": error.said[1:],
        }
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


def main() -> None:
    line = Line()
    from shoal.web.looks import Looks
    from shoal.web.looks_at_several import SeveralLooks

    def tell(stage: str, done: int | None = None, total: int | None = None) -> None:
        line.send({"stage": stage, "done": done, "total": total})

    one, several = Looks(tell), SeveralLooks(tell)
    for message in line.messages():
        name = message.pop("look")
        looks = several if message.pop("several", False) else one
        try:
            with cores.using(None):
                answer = looks.answer(name, message)
        except Exception as error:  # whatever a look runs into, the next one is answered
            answer = said(error)
        line.send(answer)


if __name__ == "__main__":
    main()
