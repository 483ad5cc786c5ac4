"""Audits of several tables about the same people."""
