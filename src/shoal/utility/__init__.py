"""Utility and risk of a release."""
