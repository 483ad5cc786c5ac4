"""The steward's page: a door like the command line. Parse, call one public job, show.

The server knows paths, counts and the policy; a process of its own, the desk, holds the table. See
docs/ui.md.
"""
