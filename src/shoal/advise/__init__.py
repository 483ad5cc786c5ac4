"""Advice before a release: profiles, risk, comparisons, proposals."""
