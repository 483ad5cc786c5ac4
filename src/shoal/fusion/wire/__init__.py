"""The channels among the owners of a fusion: links, sessions, messages."""
