"""Random requests to the page of `shoal ui`: forms of its own with other fields, and odd ones."""

import random
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import shoal.web
from shoal.web.app import application
from web.visitor import Visitor, _Forms, served

ENDS = ("/quit", "/enter", "/link")
"""What would end the page, or the visit."""


@cache
def _field_names() -> list[str]:
    """Every field that some route asks for."""
    sources = Path(shoal.web.__file__).parent.glob("*.py")
    found = [re.findall(r'one\(\w+, "(\w+)"\)', path.read_text()) for path in sources]
    return sorted({name for names in found for name in names})


def visit(seed: str, folder: Path, odd: list[Any]) -> int:
    """Some requests to a project in this folder; 70 where one is answered as an internal error.

    odd: words that fit nothing.
    """
    draw = random.Random(seed)
    words = [*odd, "1", "2", "3", "age", "ill", "k", "drop", "t.csv", "r.csv", "mondrian", "²"]
    text = [word.replace("\udcff", "?") for word in words]
    with served(folder / "project", folder) as server:
        visitor = Visitor(server)
        routes = [r for r in application(server)._app.routes if r.path not in ENDS]  # type: ignore
        seen = ""
        for _ in range(draw.randrange(3, 9)):
            forms = _Forms()
            forms.feed(seen)
            sent = [f for f in forms.forms if f["action"] and f["action"] not in ENDS]
            if sent and draw.random() < 0.6:
                form = draw.choice(sent)
                fields = [
                    (n, draw.choice(text) if draw.random() < 0.3 else v) for n, v in form["fields"]
                ]
                method, path = "POST", form["action"]
            else:
                route = draw.choice(routes)
                method = draw.choice(sorted(route.methods or {"GET"}))
                path = re.sub(r"\{\w+\}", lambda _: _quoted(draw.choice(text)), route.path)
                names = draw.choices(_field_names(), k=draw.randrange(6))
                fields = [(name, draw.choice(text)) for name in names]
                fields += [("key", visitor.key)]
                fields += [("base", server.project.policy_sha)] if draw.random() < 0.7 else []
            answer = visitor.request(method, path, fields if method == "POST" else None)
            if answer.status == 303:
                answer = visitor.get(answer.headers["location"])
            seen = answer.text if "html" in answer.headers.get("content-type", "") else ""
            if answer.status >= 500 or "internal error" in answer.text:
                said = re.search(r"internal error[^<]*", answer.text)
                print(f"shoal: {method} {path} {fields}: {said and said[0]}", file=sys.stderr)
                return 70
    return 0


def _quoted(word: str) -> str:
    from urllib.parse import quote

    return quote(word[:200], safe="")
