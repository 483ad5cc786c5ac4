"""What several releases of a growing table give away together, measured on what was published.

The attacker has all releases, and knows of some person all quasi-identifiers and in which releases
that person is.
- Cells: people who share a class in one release and a class in another one hide among each other
  only. The cell of a record is all classes it was ever in, "absent" among them; every cell must
  hold what a class must (Byun, Sohn, Bertino, Li. VLDB workshop SDM 2006).
- Signatures: all classes of a record have at least m sensitive values in common (Xiao, Tao. SIGMOD
  2007, where they show the same m values; classes of equal cells are one class to a reader, who
  then sees more).
- Forward and cross: records of a class in the earlier release, or in the later one, that can't be a
  target's who is in both, because the other class lacks their values. Backward: records of a later
  class that must be old, where the target is new (Fung, Wang, Fu, Pei. EDBT 2008).
- Specificity: cells that the later release makes narrower (Li, Liu, Cai, Zhou 2016, figure 1).
- Nestedness: later classes that lie in no single earlier class (Pei, Xu, Wang, Wang, Shi, Tan.
  ICDM 2007).

    release_view.py     a release as its readers see it; all that releases so far say of a record
    comparison.py       a release of the whole table beside all earlier ones: every check in turn
    cells.py            classes of several releases together; cells that get narrower
    signatures.py       the sensitive values that classes show
    correspondence.py   forward, cross and backward, by counts; boxes alone
    mappings.py         the same, exactly, for small releases
    people.py           everybody who was published so far
    numbering.py        groups of equal keys as numbers
"""
