"""What attacks found, for people: WP216's three questions first, then three of ours.

A row says what was tried in a sentence, how often it worked on people in the release, on people
like them who are not in it, and by chance; and in a word what that means. What was not measured is
printed, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shoal.auditor.verdict import remedy
from shoal.data.certificate import Certificate
from shoal.data.language import gettext
from shoal.reports import charts
from shoal.reports.pages import percent_text

OPENING = gettext("Attacks try; they don't prove.")
QUESTIONS = (
    gettext("Can somebody be singled out?"),
    gettext("Can a record be linked to a person?"),
    gettext("Can a sensitive value be inferred?"),
    gettext("Can it be told who is in the release?"),
    gettext("What do earlier releases add?"),
    gettext("What does the method give away?"),
)
NOTHING, NONE, SOME, MUCH = "nothing beyond chance", "none", "some", "much"
NEGLIGIBLE = 0.01  # of a gain
CONSIDERABLE = 0.10
NOT_MEASURED = "not measured"

NOT_ASKED = gettext("nobody asked for it")
ALL_PLAIN = "all plain columns"

Found = Mapping[str, Any]
Number = Mapping[str, Any] | float | None


@dataclass(frozen=True)
class Row:
    """One line of the page.

    sentence: names `{share}`, the member's, `{name}`, the attribute, and what is in `known`.
    number: what is judged, a gain or a share. control: people who are not in the release. why: it
    is not measured. measure, attribute: how `accept` names it; empty where it can't. helps: the
    measure whose remedy helps here, where `accept` can't name it.
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
    helps: str = ""
    known: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_measured(self) -> bool:
        return any(_parts(one)[0] is not None for one in (self.member, self.gain))

    @property
    def says(self) -> str:
        """What was tried and how often it worked, or why that is not known."""
        if not self.is_measured:
            return f"{self.label}: {self.why or gettext(NOT_MEASURED)}"
        known = {"share": _text(self.member), "name": self.attribute, **self.known}
        return self.sentence.format(**known)

    @property
    def number(self) -> Number:
        return self.member if self.gain is None else self.gain

    @property
    def share(self) -> float:
        """How often it worked on people of the release; 0 where that was not measured."""
        return _parts(self.member)[0] or 0.0

    @property
    def word(self) -> str:
        """What was found, in a word."""
        share, ends = _parts(self.number)
        if share is None:
            return NOT_MEASURED
        if self.gain is None:
            return NONE if share == 0 else SOME if share <= CONSIDERABLE else MUCH
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
    (QUESTIONS[1], "order"),
    (QUESTIONS[1], "population"),
    (QUESTIONS[4], "intersection"),
    (QUESTIONS[5], "minimality"),
)


def acceptance(certificate: Certificate, row: Row) -> dict[str, Any] | None:
    """The threshold of the policy that a row is judged by; None without one."""
    accepted = certificate.get("attacks", {}).get("accept", [])
    named = (one for one in accepted if one["measure"] == row.measure)
    return next((dict(one) for one in named if one["attribute"] in (row.attribute, None)), None)


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
        yield f"{row.says} [{gettext(verdict(certificate, row))}]"


MOST_RANKED = 10
PLACES = {MUCH: 0, SOME: 1, NONE: 2, NOTHING: 2, NOT_MEASURED: 3}
ASKED = dict(
    zip(("singling-out", "linkability", "inference", "membership"), QUESTIONS, strict=False)
)
"""The question that an attack answers."""


def worst_of(certificate: Certificate, attack: str) -> str:
    """The worst that was found to the question of an attack, in a word; empty without one."""
    words = [row.word for row in rows_of(certificate) if row.question == ASKED.get(attack)]
    return min(words, key=PLACES.__getitem__, default="")


class Finding(NamedTuple):
    """What an attack found, in a word and a sentence, and what to do about it."""

    word: str
    says: str
    remedy: str


def ranked(certificate: Certificate) -> list[Finding]:
    """The findings that matter most, at most ten: much, some, none, then what was not measured."""
    rows = sorted(rows_of(certificate), key=lambda row: (PLACES[row.word], -row.share))
    found = []
    for row in rows[:MOST_RANKED]:
        helps = ""
        if row.word in (MUCH, SOME):
            helps = remedy(certificate, row.measure or row.helps, row.attribute)
            helps = f"{helps[:1].upper()}{helps[1:]}."
        found.append(Finding(row.word, f"{row.says.rstrip('.')}.", helps))
    return found


def _singled_out(found: Found) -> Iterator[Row]:
    attack = found.get("singling-out")
    if attack is None:
        return
    values, chance = attack["univariate"], attack["univariate_baseline"]
    found_share, by_chance = _parts(values)[0], _parts(chance)[0]
    yield Row(
        QUESTIONS[0],
        gettext("one value alone"),
        gettext(
            "Asking for a value that is shown alone, or a column's least or greatest, finds one"
            " person in {share} of trials{known}."
        ),
        values,
        chance=chance,
        gain=None if found_share is None or by_chance is None else found_share - by_chance,
        helps="ends_gain",
        known={"known": _also(gettext("; asking for any value in {}"), chance)},
    )
    yield Row(
        QUESTIONS[0],
        gettext("the end of a range"),
        gettext(
            "Asking for the end of a range, with the rest of its class, finds one person in {share}"
            " of trials{among}."
        ),
        attack["isolate"],
        attack["control"],
        attack["interior"],
        attack["gain"],
        "ends_gain",
        why=attack.get("why"),
        known={"among": _also(gettext("; among people not in it in {}"), attack["control"])},
    )
    for name, share in attack["alone"].items():
        is_all = name == ALL_PLAIN
        yield Row(
            QUESTIONS[0],
            gettext("alone with {name}", name=gettext("all") if is_all else name),
            gettext("{share} of people are alone in their class with their value of {name}."),
            share,
            measure="alone",
            attribute=name,
            known={"name": gettext("all columns published as they are")} if is_all else {},
        )


def _linked(found: Found) -> Iterator[Row]:
    attack = found.get("linkability")
    for one in () if attack is None else (attack, *attack.get("others", [])):
        yield Row(
            QUESTIONS[1],
            gettext("finding a person's record"),
            gettext(
                "Whoever has a list of names with {known} finds the right record of {share} of"
                " people."
            ),
            one["success"],
            chance=one["baseline"],
            measure="linkage" if one is attack else "",
            why=one.get("why"),
            helps="linkage",
            known={"known": ", ".join(one["known"])},
        )
    order = found.get("order")
    if order is not None:
        others = _also(gettext(", the place of somebody else of the class {}"), order["others"])
        yield Row(
            QUESTIONS[1],
            gettext("finding it by its place"),
            gettext("The place that {column} has among the rows finds {share} of people{others}."),
            order["found"],
            order["others"],
            order["chance"],
            order["gain"],
            why=order.get("why"),
            helps="order",
            known={"column": order["column"], "others": others},
        )
    around = found.get("population")
    if around is not None:
        yield Row(
            QUESTIONS[1],
            gettext("naming by the population"),
            gettext(
                "If the {source} describes the population, {share} of records are named rightly."
            ),
            around["marketer"],
            chance=around.get("baseline", {}).get("mean"),
            measure="marketer",
            why=around.get("why"),
            known={"source": around["source"]},
        )


def _inferred(found: Found) -> Iterator[Row]:
    for name, one in found.get("inference", {}).items():
        best = (one["attackers"] or {}).get(one.get("best"), {})
        member, control = best.get("member"), best.get("control")
        near = _near(one)
        yield Row(
            QUESTIONS[2],
            gettext("guessing {name}", name=name),
            gettext(
                "Guessing {name}{near} is right for {member} of people in the"
                " release{outside}{most}."
            ),
            member,
            control,
            one["baseline"],
            one["gain"],
            "inference_gain",
            name,
            one.get("why"),
            known={
                "near": near,
                "member": _text(member),
                "outside": _also(gettext(", {} of people like them not in it"), control),
                "most": _also(gettext(", {} by the most frequent value"), one["baseline"]),
            },
        )
        yield Row(
            QUESTIONS[2],
            gettext("{name} nearly certain", name=name),
            gettext(
                "{share} of people are in a class of which at least 90 % have one {name}{near}."
            ),
            one["certain"],
            measure="certain",
            attribute=name,
            known={"near": near},
        )


def _near(one: Mapping[str, Any]) -> str:
    """How far off a guess of a number may be; empty of other values."""
    if not one.get("tolerance"):
        return ""
    share = one.get("tolerance_share")  # earlier certificates do not state it
    part = gettext("a part") if share is None else f"{100 * share:g} %"
    return gettext(", give or take {part} of its range,", part=part)


def _by_class(found: Found) -> Iterator[Row]:
    """What the class of a person tells by itself."""
    for name, one in found.get("skewness", {}).items():
        yield Row(
            QUESTIONS[2],
            gettext("{name} ten times as likely", name=name),
            gettext(
                "{share} of people have a value of {name} that is at least ten times as frequent in"
                " their class as in the table."
            ),
            one["lifted"],
            measure="lifted",
            attribute=name,
            why=one.get("why"),
        )
    for name, one in found.get("homogeneity", {}).items():
        yield Row(
            QUESTIONS[2],
            gettext("{name} certain", name=name),
            gettext(
                "{share} of people are in a class with one {name} alone: whoever finds the class"
                " knows the value{chance}."
            ),
            one["people"],
            chance=one["chance"],
            measure="homogeneous",
            attribute=name,
            why=one.get("why"),
            known={"chance": _also(gettext("; by chance {}"), one["chance"])},
        )


def _member(found: Found) -> Iterator[Row]:
    attack = found.get("membership")
    if attack is not None:
        yield Row(
            QUESTIONS[3],
            "membership",
            gettext(
                "Telling who is in the release from who is not beats tossing a coin by {advantage}."
            ),
            gain=attack["advantage"],
            measure="membership",
            why=attack["why"] if attack["advantage"] is None else None,
            known={"advantage": _text(attack["advantage"])},
        )


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
    others = gettext("the earlier release")
    if earlier != 1:
        others = gettext("{earlier} earlier releases", earlier=earlier)
    if linked["below_k"] is not None:
        yield Row(
            QUESTIONS[4],
            gettext("among fewer than {k}", k=k),
            gettext(
                "Together with {others}, rows known to be one person's, {below_k} of people stand"
                " among fewer than {k}."
            ),
            linked["below_k"],
            helps="alone_after",
            known={"others": others, "below_k": _text(linked["below_k"]), "k": k},
        )
    for name, one in (attack[attack["applies"]] or {}).get("attributes", {}).items():
        yield Row(
            QUESTIONS[4],
            gettext("certain {name}", name=name),
            gettext("Together with {others}, one {name} is left for {share} of people."),
            one["certain"],
            measure="certain_after",
            attribute=name,
            known={"others": others},
        )


def _method(found: Found) -> Iterator[Row]:
    attack = found.get("minimality")
    if attack is None:
        return
    yield Row(
        QUESTIONS[5],
        gettext("values implied"),
        gettext("Of coarsened cells, {share} tell a true value, though not whose."),
        attack["implied"],
        measure="implied",
        why=attack.get("why"),
    )
    for name, one in (attack.get("replay") or {}).items():
        if isinstance(one, Mapping) and one.get("excluded") is not None:
            yield Row(
                QUESTIONS[5],
                gettext("ways of {name}", name=name),
                gettext(
                    "Knowing the method rules out {share} of the ways {name} could lie in classes"
                    " left whole."
                ),
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
    return gettext(NOT_MEASURED) if share is None else percent_text(share)


def _also(words: str, number: Number) -> str:
    """A part of a sentence; empty where its number is not known."""
    share = _parts(number)[0]
    return "" if share is None else words.format(percent_text(share))


def page_content(certificate: Certificate, always: bool = False) -> list[dict[str, Any]]:
    """The rows by question, as the template takes them.

    Where nothing was tried it is empty, or, `always`, says so to each question.
    """
    rows = rows_of(certificate)
    return [
        {
            "question": question,
            "rows": [_cells(certificate, row) for row in rows if row.question == question]
            or [_cells(certificate, Row(question, gettext("not tried"), "", why=NOT_ASKED))],
        }
        for question in (QUESTIONS if rows or always else ())
    ]


def _cells(certificate: Certificate, row: Row) -> dict[str, Any]:
    threshold = acceptance(certificate, row)
    gain, ends = _figure(row.gain)
    if row.gain is not None and not gain:
        gain = NOT_MEASURED
    return {
        "sentence": row.says,
        "figures": [_figure(number) for number in (row.member, row.control, row.chance)],
        "gain": f"{gain} ({ends})" if ends else gain,
        "at_most": "" if threshold is None else percent_text(threshold["at_most"]),
        "word": verdict(certificate, row),
        "why": row.why if row.is_measured else None,
    }


def _figure(number: Number) -> tuple[str, str]:
    """A share and its interval, as a table shows them; empty where there is none."""
    share, ends = _parts(number)
    if share is None:
        return "", ""
    if ends is None:
        return percent_text(share), ""
    least, most = map(percent_text, ends)
    return percent_text(share), gettext("{least} to {most}", least=least, most=most)


def bars(certificate: Certificate) -> list[tuple[str, list[tuple[float, float, float] | None]]]:
    """For a chart: each row that found anybody with its members', others' and chance's share, in
    percent, with the ends of their intervals.
    """
    found = []
    for row in rows_of(certificate):
        numbers = (row.member, row.control, row.chance)
        if _parts(row.member)[0] is not None and any(_parts(number)[0] for number in numbers):
            found.append((row.label, [_bar(number) for number in numbers]))
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
        "ranked": ranked(certificate),
        "attack_bars": charts.attacks_chart(found).svg("attacks") if found else None,
        "control": tried.get("control"),
    }
