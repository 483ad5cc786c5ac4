"""Random tables, streams and ledgers, judged by a checker that shares no code with Shoal.

`cells`, `rules` and `judge` are the checker, on the standard library alone; `draw` makes cases;
`tables`, `streams` and `ledgers` run them and compare; `spoil` breaks releases by hand; `shrink`
makes a failing case small. `python -m fuzz` from `tests/`, or `make fuzz`, runs as many as asked.
"""
