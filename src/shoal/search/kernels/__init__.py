"""Compiled loops that several methods share: arrays in, arrays out."""
