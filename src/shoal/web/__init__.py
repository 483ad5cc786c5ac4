"""The steward's page: a door like the command line. See docs/ui.md."""
