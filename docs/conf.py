"""How the pages in this folder become a site: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))

from shoal.version import VERSION  # noqa: E402

project = "Shoal"
author = "the Shoal authors"
version = release = VERSION

extensions = ["myst_parser", "registry_tables"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_ext"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"Shoal {VERSION}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
