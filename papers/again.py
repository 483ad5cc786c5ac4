"""Keeps the folders beside this file current: python papers/again.py [NAME ...] [--seconds S].

Without --seconds, verdicts and figures are made anew from the committed rows. With it, rows that
the grid asks for and the folder lacks are added, and others measured again for so many CPU seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from shoal_papers.reproduce import papers
from shoal_papers.reproduce.committed import renew

HERE = Path(__file__).parent


def main() -> None:
    """Renews the folders of the papers that are named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *papers()], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    for name in asked.names or papers():
        folder = HERE / name.replace("-", "_")
        for path in renew(papers()[name], folder, asked.data, asked.seconds, print):
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
