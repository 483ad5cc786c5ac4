"""What a page of HTML holds, whatever its lines are broken like."""

import re


def on_one_line(page: str) -> str:
    """The page without white space beside its tags, and one blank where there was more."""
    return re.sub(r" ?(<[^>]*>) ?", r"\1", " ".join(page.split()))
