"""Runs attacks on a release: binds release, original and other people to one scene."""
