"""The desk: a process that holds the table and answers looks. The server talks to it in JSON."""

from __future__ import annotations

from shoal.data import cores
from shoal.web.child import Line, said

WARM = ("polars", "shoal.advise.check", "shoal.advise.profile", "shoal.web.looks")


def main() -> None:
    line = Line()
    from shoal.web.looks import Looks

    looks = Looks()
    for message in line.messages():
        name = message.pop("look")
        try:
            with cores.using(None):
                answer = looks.answer(name, message)
        except Exception as error:  # whatever a look runs into, the next one is answered
            answer = said(error)
        line.send(answer)


if __name__ == "__main__":
    main()
