"""Growing tables: release after release, in a ledger that nobody can rewrite unseen."""
