"""Commands that may write no file beyond a size, which to them is a disk that is full.

The limit is set by the process that becomes the command, not between fork and exec: there, hooks of
libraries run that the tests have loaded, and one of them can end the child before it begins.
"""

import sys

LIMITED = """
import os, resource, sys
size = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
os.execv(sys.argv[2], sys.argv[2:])
"""


def limited(size: int, *arguments: str) -> list[str]:
    """`python -m shoal` with these arguments, whose files may have `size` bytes each."""
    # -B: bytecode cut at the limit would break whoever imports the module next
    python = [sys.executable, "-B"]
    shoal = [*python, "-X", "faulthandler", "-m", "shoal"]
    return [*python, "-c", LIMITED, str(size), *shoal, *arguments]
