"""Compiled loops over the rows of people: arrays in, arrays out."""
