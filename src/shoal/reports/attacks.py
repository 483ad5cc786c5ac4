"""What attacks found, for people: WP216's three questions first, then three of ours.

A row says what was tried in a sentence, how often it worked on people in the release, on people
like them who are not in it, and by chance; and in a word what that means. What was not measured is
printed, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.data.certificate import Certificate
from shoal.reports import charts
from shoal.reports.pages import percent_text

OPENING = "Attacks try; they don't prove."
QUESTIONS = (
    "Can somebody be singled out?",
    "Can a record be linked to a person?",
    "Can a sensitive value be inferred?",
    "Can it be told who is in the release?",
    "What do earlier releases add?",
    "What does the method give away?",
)
NOTHING, SOME, MUCH = "nothing beyond chance", "some", "much"
NEGLIGIBLE = 0.01  # of a gain
CONSIDERABLE = 0.10
NOT_MEASURED = "not measured"

Found = Mapping[str, Any]
Number = Mapping[str, Any] | float | None


@dataclass(frozen=True)
class Row:
    """One line of the page.

    number: what is judged, a gain or a share. control: people who are not in the release. why: it
    is not measured. measure, attribute: how `accept` names it; empty where it can't.
    """

    question: str
    label: str
    sentence: str
    member: Number = None
    control: Number = None
    chance: Number = None
    gain: Number = None
    measure: str = ""
    attribute: str | None = None
    why: str | None = None

    @property
    def number(self) -> Number:
        return self.member if self.gain is None else self.gain

    @property
    def word(self) -> str:
        """What was found, in a word."""
        share, ends = _parts(self.number)
        if share is None:
            return NOT_MEASURED
        if self.gain is None:
            return "none" if share == 0 else SOME if share <= CONSIDERABLE else MUCH
        upper = share if ends is None else ends[1]
        if upper <= NEGLIGIBLE or (ends is not None and ends[0] <= 0 <= ends[1]) or share <= 0:
            return NOTHING
        return SOME if share <= CONSIDERABLE else MUCH


def rows_of(certificate: Certificate) -> list[Row]:
    """Every row of the page, question by question; empty where nothing was tried."""
    found = certificate.get("attacks")
    if not found or "seed" not in found:
        return []
    rows = [*_singled_out(found), *_linked(found), *_inferred(found), *_by_class(found)]
    rows += [*_member(found), *_together(found, certificate), *_method(found)]
    skipped = found.get("skipped", {})
    rows += [Row(question, name, "", why=skipped[name]) for question, name in OF if name in skipped]
    return sorted(rows, key=lambda row: QUESTIONS.index(row.question))


# attacks that may be skipped, and the question that they would have answered
OF = (
    (QUESTIONS[0], "singling-out"),
    (QUESTIONS[1], "linkability"),
    (QUESTIONS[1], "population"),
    (QUESTIONS[4], "intersection"),
    (QUESTIONS[5], "minimality"),
)


def acceptance(certificate: Certificate, row: Row) -> dict[str, Any] | None:
    """The threshold of the policy that a row is judged by; None without one."""
    accepted = certificate.get("attacks", {}).get("accept", [])
    for threshold in accepted:
        same = threshold["attribute"] in (row.attribute, None)
        if threshold["measure"] == row.measure and same:
            return dict(threshold)
    return None


def verdict(certificate: Certificate, row: Row) -> str:
    """The word, or what the policy says to it."""
    threshold = acceptance(certificate, row)
    if threshold is None or threshold["holds"] is None:
        return row.word
    return "accepted" if threshold["holds"] else "not accepted"


def attack_lines(certificate: Certificate) -> Iterator[str]:
    """The rows as a command prints them."""
    rows = rows_of(certificate)
    if rows:
        yield OPENING
    for row in rows:
        said = row.sentence or f"{row.label}: {row.why}"
        yield f"{said} [{verdict(certificate, row)}]"


def _singled_out(found: Found) -> Iterator[Row]:
    attack = found.get("singling-out")
    if attack is None:
        return
    values, chance = attack["univariate"], attack["univariate_baseline"]
    sentence = (
        f"A value that cells show by itself, or the outermost end of a column, belongs to one"
        f" person in {_text(values)} of trials; any value of the domains in {_text(chance)}."
    )
    yield Row(QUESTIONS[0], "values shown alone", sentence, values, chance=chance)
    among = f"; among people not in it in {_text(attack['control'])}" if attack["control"] else ""
    sentence = (
        "An interval's end, with the rest of its class, points at one person in"
        f" {_text(attack['isolate'])} of trials{among}."
    )
    yield Row(
        QUESTIONS[0],
        "ends of intervals",
        sentence,
        attack["isolate"],
        attack["control"],
        attack["interior"],
        attack["gain"],
        "ends_gain",
        why=attack.get("why"),
    )
    for name, share in attack["alone"].items():
        sentence = f"{_text(share)} of people are alone in their class with their value of {name}."
        label = f"alone with {name}"
        yield Row(QUESTIONS[0], label, sentence, share, measure="alone", attribute=name)


def _linked(found: Found) -> Iterator[Row]:
    attack = found.get("linkability")
    if attack is not None:
        for one in (attack, *attack.get("others", [])):
            known, share, chance = ", ".join(one["known"]), one["success"], one["baseline"]
            sentence = f"A list of {known} picks the right record for {_text(share)} of people."
            measure = "linkage" if one is attack else ""
            label = "a list of names"
            yield Row(QUESTIONS[1], label, sentence, share, chance=chance, measure=measure)
    around = found.get("population")
    if around is not None:
        yield Row(
            QUESTIONS[1],
            "the population",
            f"If the {around['source']} describes the population, {_text(around['marketer'])} of"
            " records are named rightly.",
            around["marketer"],
            chance=around.get("baseline", {}).get("mean"),
            measure="marketer",
            why=around.get("why"),
        )


def _inferred(found: Found) -> Iterator[Row]:
    for name, one in found.get("inference", {}).items():
        best = (one["attackers"] or {}).get(one.get("best"), {})
        member, control = best.get("member"), best.get("control")
        outside = f", {_text(control)} of people like them not in it" if control else ""
        yield Row(
            QUESTIONS[2],
            f"guessing {name}",
            f"Guessing {name} is right for {_text(member)} of people in the release{outside},"
            f" {_text(one['baseline'])} by the most frequent value.",
            member,
            control,
            one["baseline"],
            one["gain"],
            "inference_gain",
            name,
            one.get("why"),
        )
        sentence = (
            f"{_text(one['certain'])} of people stand in a class where one {name} is at least 90 %."
        )
        share, label = one["certain"], f"{name} at 90 %"
        yield Row(QUESTIONS[2], label, sentence, share, measure="certain", attribute=name)


def _by_class(found: Found) -> Iterator[Row]:
    """What the class of a person tells by itself."""
    for name, one in found.get("skewness", {}).items():
        sentence = (
            f"{_text(one['lifted'])} of people have a value of {name} ten times as frequent in"
            " their class as in the table, or more."
        )
        share, label = one["lifted"], f"rare {name}"
        yield Row(QUESTIONS[2], label, sentence, share, measure="lifted", attribute=name)
    for name, one in found.get("homogeneity", {}).items():
        sentence = (
            f"{_text(one['people'])} of people stand in a class of one {name}: who finds it knows"
            f" the value; by chance {_text(one['chance'])}."
        )
        yield Row(
            QUESTIONS[2],
            f"one {name}",
            sentence,
            one["people"],
            chance=one["chance"],
            measure="homogeneous",
            attribute=name,
        )


def _member(found: Found) -> Iterator[Row]:
    attack = found.get("membership")
    if attack is None:
        return
    advantage = attack["advantage"]
    if advantage is None:
        yield Row(QUESTIONS[3], "membership", "", measure="membership", why=attack["why"])
        return
    sentence = (
        f"Telling people in the release from people not in it beats a coin by {_text(advantage)}."
    )
    yield Row(QUESTIONS[3], "membership", sentence, gain=advantage, measure="membership")


def _together(found: Found, certificate: Certificate) -> Iterator[Row]:
    attack = found.get("intersection")
    if attack is None:
        return
    k = next((p["asked"] for p in certificate["promises"] if p["model"] == "k-anonymity"), None)
    linked = attack["linked"]
    if linked is None:
        yield Row(QUESTIONS[4], "intersection", "", why=attack["why"])
        return
    earlier = attack["releases"] - 1
    others = "the earlier release" if earlier == 1 else f"{earlier} earlier releases"
    if linked["below_k"] is not None:
        sentence = (
            f"Together with {others}, rows known to be one person's,"
            f" {_text(linked['below_k'])} of people stand among fewer than {k}."
        )
        yield Row(QUESTIONS[4], f"among fewer than {k}", sentence, linked["below_k"])
    for name, one in (attack[attack["applies"]] or {}).get("attributes", {}).items():
        share, label = one["certain"], f"certain {name}"
        sentence = f"Together with {others}, one {name} is left for {_text(share)} of people."
        yield Row(QUESTIONS[4], label, sentence, share, measure="certain_after", attribute=name)


def _method(found: Found) -> Iterator[Row]:
    attack = found.get("minimality")
    if attack is None:
        return
    yield Row(
        QUESTIONS[5],
        "tight cells",
        ""
        if _parts(attack["implied"])[0] is None
        else f"Of coarsened cells, {_text(attack['implied'])} tell a true value, though not whose.",
        attack["implied"],
        measure="implied",
        why=attack.get("why"),
    )
    replays = attack.get("replay") or {}
    for name, one in replays.items():
        if isinstance(one, Mapping) and one.get("excluded") is not None:
            yield Row(
                QUESTIONS[5],
                f"ways of {name}",
                f"Knowing the method rules out {_text(one['excluded'])} of the ways {name} could"
                " lie in classes left whole.",
                one["excluded"],
                measure="excluded",
                attribute=name,
            )


def _parts(number: Number) -> tuple[float | None, list[float] | None]:
    """A share and its interval."""
    if isinstance(number, Mapping):
        return number["share"], number["ci"]
    return number, None


def _text(number: Number) -> str:
    share = _parts(number)[0]
    return NOT_MEASURED if share is None else percent_text(share)


def interval_text(number: Number) -> str:
    """A share with its interval, as a table shows it."""
    share, ends = _parts(number)
    if share is None:
        return NOT_MEASURED
    if ends is None:
        return percent_text(share)
    return f"{percent_text(share)} ({percent_text(ends[0])} to {percent_text(ends[1])})"


def page_content(certificate: Certificate, always: bool = False) -> list[dict[str, Any]]:
    """The rows by question, as the template takes them.

    Where nothing was tried it is empty, or, `always`, says so to each question.
    """
    rows = rows_of(certificate)
    return [
        {
            "question": question,
            "rows": [_cells(certificate, row) for row in rows if row.question == question]
            or [_cells(certificate, Row(question, NOT_MEASURED, "", why="not asked for"))],
        }
        for question in (QUESTIONS if rows or always else ())
    ]


def _cells(certificate: Certificate, row: Row) -> dict[str, Any]:
    threshold = acceptance(certificate, row)
    return {
        "sentence": row.sentence or row.label,
        "figures": [_figure(number) for number in (row.member, row.control, row.chance)],
        "gain": "" if row.gain is None else interval_text(row.gain),
        "at_most": "" if threshold is None else percent_text(threshold["at_most"]),
        "word": verdict(certificate, row),
        "why": row.why,
    }


def _figure(number: Number) -> dict[str, str]:
    """A share and, apart, its interval; empty where there is none."""
    share, ends = _parts(number)
    return {
        "share": "" if share is None else percent_text(share),
        "ends": "" if ends is None else f"{percent_text(ends[0])} to {percent_text(ends[1])}",
    }


def bars(certificate: Certificate) -> list[tuple[str, list[tuple[float, float, float] | None]]]:
    """For a chart: each measured row with its members', others' and chance's share, in percent,
    with the ends of their intervals.
    """
    found = []
    for row in rows_of(certificate):
        if _parts(row.member)[0] is not None:
            found.append((row.label, [_bar(n) for n in (row.member, row.control, row.chance)]))
    return found


def _bar(number: Number) -> tuple[float, float, float] | None:
    share, ends = _parts(number)
    if share is None:
        return None
    low, high = ends or (share, share)
    return 100 * share, 100 * low, 100 * high


# What attacks found as a part of a page, the same in the report, the dossier and the history.


def attack_section(certificate: Certificate, always: bool = False) -> dict[str, Any]:
    """What `attacks.html.j2` takes. always: with its questions even where nothing was tried."""
    found = bars(certificate)
    tried = certificate.get("attacks") or {}
    return {
        "attacks": page_content(certificate, always),
        "attacks_opening": OPENING,
        "attack_bars": charts.attacks_chart(found).svg("attacks") if found else None,
        "control": tried.get("control"),
    }
