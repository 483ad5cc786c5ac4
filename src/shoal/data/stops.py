"""The signals that stop a command, as Ctrl-C does."""

import signal

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")
STOPS = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
"""Windows lacks some."""
