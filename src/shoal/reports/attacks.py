"""What attacks found, for people: WP216's three questions first, then three of ours.

A row says what was tried in a sentence, how often it worked on people in the release, on people
like them who are not in it, and by chance; and in a word what that means. What was not measured is
printed, too.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from shoal.attacks.run.request import MOST_FOLDS, NEEDS_CONTROL
from shoal.auditor.verdict import NONE_ON_LINKED, remedy
from shoal.data.attack_scene import Findings
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import AcceptedReport, have_several_rows, unit
from shoal.data.json_rules import is_number
from shoal.data.language import capitalised, gettext, ngettext
from shoal.data.warnings import PLAIN_NAMES_PEOPLE
from shoal.errors import UNREADABLE, InputError
from shoal.policy import registry
from shoal.reports import charts
from shoal.reports.pages import Content, percent_text

OPENING = gettext("Attacks try; they don't prove.")
LEGEND = gettext(
    "“Much” is more than 10 % of people; of a guess, more than 10 points above the rate for people"
    " who are not in the release, or above chance where nobody else was tried; “some” is less. “No"
    " difference shown” may be up to 10 points, “too few to tell” may be much."
)


class Question(NamedTuple):
    """What attacks answer. harm: of what they find, the worst first: a person is found, a private
    value of theirs is learned, it is known who is in the release, cells are known.
    """

    text: str
    harm: int
    attacks: tuple[str, ...]


SINGLED_OUT = Question(gettext("Can somebody be singled out?"), 0, ("singling-out",))
LINKED = Question(
    gettext("Can a record be linked to a person?"), 0, ("linkability", "order", "population")
)
INFERRED = Question(gettext("Can a sensitive value be inferred?"), 1, ("inference",))
MEMBER = Question(gettext("Can it be told who is in the release?"), 2, ("membership",))
TOGETHER = Question(gettext("What do earlier releases add?"), 1, ("intersection",))
METHOD = Question(gettext("What does the method give away?"), 3, ("minimality",))
QUESTIONS = (SINGLED_OUT, LINKED, INFERRED, MEMBER, TOGETHER, METHOD)

NOTHING, NONE, SOME, MUCH = "nothing beyond chance", "none", "some", "much"
NO_MORE = "nothing beyond others"  # where a gain is over people who are not in the release
# of a gain whose interval holds 0 but does not show that there is nothing
NO_DIFFERENCE, TOO_FEW = "no difference shown", "too few to tell"
MORE_PEOPLE = gettext("Try it on more people (--folds 5 or --control; folds=5 or control=).")
A_CONTROL = gettext(
    "Try it on more people: give more who are not in the release (--control; control=)."
)
NO_MORE_TRIES = gettext("This release allows no more tries; no option changes that.")
NEGLIGIBLE = 0.01  # of a gain
CONSIDERABLE = 0.10
NOT_MEASURED = "not measured"
PEOPLE, TRIES = gettext("people"), gettext("tries")

NOT_ASKED = gettext("not asked for")
ALL_PLAIN = "all plain columns"

Number = Mapping[str, Any] | float | None


@dataclass(frozen=True)
class Row:
    """One line of the page.

    number: what is judged, a gain or a share. control: people who are not in the release. why: it
    is not measured. measure, attribute: how `accept` names it; empty where it can't. helps: the
    measure whose remedy helps here, where `accept` can't name it. others: whom a gain is compared
    with, where these are in the release, too. among: what is counted; people are called what the
    certificate counts. attack: its name; empty where none was needed. guesses: the row that has the
    gain, where another row's share is judged by it.
    """

    question: Question
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
    others: str = ""
    among: str = PEOPLE
    attack: str = ""
    guesses: "Row | None" = None

    def __post_init__(self) -> None:
        for number in (self.member, self.control, self.chance, self.gain):
            share, ends = _parts(number)
            least, most = (0, 0) if ends is None else ends
            if not all(map(is_number, (0 if share is None else share, least, most))):
                raise ValueError("a certificate may say anything")

    @property
    def is_measured(self) -> bool:
        return any(_parts(one)[0] is not None for one in (self.member, self.gain))

    @property
    def says(self) -> str:
        """What was tried and how often it worked, or why that is not known; no final full stop."""
        if not self.is_measured:
            return f"{self.label}: {self.why or gettext(NOT_MEASURED)}"
        said = self._beside
        if self.guesses is not None:
            share = _share_text(self.guesses.member)
            said.append(gettext("judged by how often a guess is right: {share}", share=share))
            said += self.guesses._beside
        if self.word == NO_DIFFERENCE and (ends := _parts(self.gain)[1]):
            said.append(gettext("at most {points:.1f} points more", points=100 * ends[1]))
        tried = self.member.get("of") if isinstance(self.member, Mapping) else None
        among = f"{tried:,} {self.among}" if isinstance(tried, int) else self.among
        share = gettext("{share} of {among}: ", share=_share_text(self.member), among=among)
        return f"{'' if self.member is None else share}{'; '.join([self.sentence, *said])}"

    @property
    def _beside(self) -> list[str]:
        """How often it worked on others, and by chance."""
        others = self.others or gettext("for people who are not in the release")
        beside = ((others, self.control), (gettext("by chance"), self.chance))
        known = [(who, one) for who, one in beside if _parts(one)[0] is not None]
        return [f"{who}, {_share_text(one)}" for who, one in known]

    @property
    def line(self) -> str:
        """What it says, as a sentence where something was measured."""
        return f"{self.says}." if self.is_measured else self.says

    @property
    def number(self) -> Number:
        return self.member if self.gain is None else self.gain

    @property
    def is_over_others(self) -> bool:
        """Whether a gain is over other people, not over chance."""
        judged = self.guesses or self
        has_control = _parts(judged.control)[0] is not None
        return bool(judged.others) or has_control or judged.chance is None

    @property
    def difference(self) -> str:
        """How much better it worked than on others, or than chance, and which of the two."""
        gain = _parts(self.gain)[0]
        if gain is None:
            return ""
        others = gettext("for people who are not in the release")
        others = self.others or (others if self.is_over_others else gettext("by chance"))
        if gain <= 0 or self.word == NO_DIFFERENCE:
            return gettext("no better than {others}", others=others)
        text = interval_text(self.gain)
        return gettext("better by {gain} than {others}", others=others, gain=text)

    @property
    def word(self) -> str:
        """What was found, in a word."""
        share, ends = _parts(self.number)
        if share is None:
            return NOT_MEASURED
        if _parts(self.member)[0] == 0:
            return NONE
        if self.gain is None:
            chance = _parts(self.chance)[0] or 0
            # two shares that read alike are the same to a reader
            is_chance = share <= chance or _share_text(share) == _share_text(chance)
            if self.attack == "linkability" and is_chance:
                return NONE
            return SOME if share <= CONSIDERABLE else MUCH
        least, most = ends or (share, share)
        if most <= NEGLIGIBLE:
            return NO_MORE if self.is_over_others else NOTHING
        if least <= 0:
            return NO_DIFFERENCE if most <= CONSIDERABLE else TOO_FEW
        return SOME if share <= CONSIDERABLE else MUCH

    @property
    def may_be_much(self) -> bool:
        """Whether much was found, or as much on too few people to tell whether it is chance."""
        share = _parts(self.number)[0]
        return self.word == MUCH or (self.word == TOO_FEW and (share or 0) > CONSIDERABLE)


def rows_of(certificate: Certificate) -> list[Row]:
    """Every row of the page, question by question; empty where nothing was tried.

    Raises InputError where a certificate states what no attack finds.
    """
    found = certificate.get("attacks")
    if not found or "seed" not in found:
        return [*_matched(certificate)]
    try:
        return _rows(found, certificate)
    except UNREADABLE:
        raise InputError(
            "certificate: 'attacks' says what no attack of this version finds; fetch it again, or"
            " try them with 'shoal attack'"
        ) from None


def _rows(found: Findings, certificate: Certificate) -> list[Row]:
    rows = [*_by("singling-out", _singled_out(found)), *_linked(found)]
    rows += [*_by("linkability", _linked_by_names(found))]
    rows += [*_by("inference", _inferred(found, certificate)), *_by_class(found)]
    counted = gettext(unit(certificate).many)
    rows += [*_by("membership", _member(found, counted)), *_by("minimality", _method(found))]
    rows += _by("intersection", _together(found, certificate))
    skipped = found.get("skipped", {})
    asked = (SINGLED_OUT, LINKED, TOGETHER, METHOD)  # others say themselves what was not measured
    left_out = ((one, name) for one in asked for name in one.attacks if name in skipped)
    rows += [Row(one, name, "", why=skipped[name], attack=name) for one, name in left_out]
    rows = [replace(row, among=counted) if row.among == PEOPLE else row for row in rows]
    return sorted(rows, key=lambda row: QUESTIONS.index(row.question))


def _by(attack: str, rows: Iterator[Row]) -> Iterator[Row]:
    return (replace(row, attack=attack) for row in rows)


def acceptance(certificate: Certificate, row: Row) -> AcceptedReport | None:
    """The threshold of the policy that a row is judged by; None without one."""
    for threshold in certificate.get("attacks", {}).get("accept", []):
        if threshold["measure"] == row.measure and threshold["attribute"] in (row.attribute, None):
            return threshold
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
    yield from (OPENING, LEGEND) if rows else ()
    for row in rows:
        yield f"{row.line} [{gettext(verdict(certificate, row))}]"


ALIGNED = gettext("Published rows were matched with the original's, by the trace or their order.")
NOT_ALIGNED = gettext(
    "Published rows were not matched with the original's, since no trace was given: attacks that"
    " need it were left out, and each row counts as another person's."
)


FEW_TRIED = gettext(
    "Shares are of {people} {counted} at most: as many of the release are tried as there are"
    " others."
)
NO_CONTROL = gettext(
    "They were compared with nobody who is not in the release ({reason}), but with chance."
)


def grounds(certificate: Certificate) -> list[str]:
    """Whether attacks knew whose row is whose, and had others to compare with, where stated."""
    tried = certificate["attacks"]
    known, control = tried.get("aligned"), tried.get("control")
    found = [] if known is None else [ALIGNED if known else NOT_ALIGNED]
    if not isinstance(control, Mapping):
        return found
    people = control.get("people")
    if control.get("kind") == "none":
        found.append(NO_CONTROL.format(reason=control.get("reason")))
    elif people is not None and is_number(people) and people < 100:
        found.append(FEW_TRIED.format(people=people, counted=gettext(unit(certificate).of(people))))
    return found


MOST_RANKED = 7
PLACES = {MUCH: 0, TOO_FEW: 1, SOME: 2, NO_DIFFERENCE: 3, NOT_MEASURED: 5}
PLACES |= dict.fromkeys((NONE, NOTHING, NO_MORE), 4)
COLOURS = {MUCH: "bad"} | dict.fromkeys((TOO_FEW, SOME, NO_DIFFERENCE, NOT_MEASURED), "partly")
"""Of the worst that an attack found; of every other answer it is green."""


def worst_of(certificate: Certificate, attack: str) -> str:
    """The worst that was found to the question of an attack, in a word; empty without one."""
    rows = worst_first(certificate)
    return next((row.word for row in rows if attack in row.question.attacks), "")


class Finding(NamedTuple):
    """What an attack found, in a word and a sentence, what to do about it, whether that is
    `accepted` in words or `open`, and the attack's name.
    """

    word: str
    says: str
    remedy: str
    state: str = ""
    attack: str = ""

    @property
    def headed(self) -> str:
        """The word, with the attack's name."""
        return f"{self.word} ({self.attack})" if self.attack else self.word


def ranked(
    certificate: Certificate,
    accepted: Collection[str] | None = None,
    most: int | None = MOST_RANKED,
) -> list[Finding]:
    """The findings that matter most, as `worst_first` has them.

    accepted: sentences that are accepted in words; None where nobody decides. most: how many; None
    for all.
    """
    return [_finding(certificate, row, accepted) for row in worst_first(certificate)[:most]]


def must_be_accepted(certificate: Certificate) -> list[Row]:
    """What must be accepted in words: it is or may be much, and the policy does not judge it."""
    return [row for row in worst_first(certificate) if _asks_for_words(certificate, row)]


def _asks_for_words(certificate: Certificate, row: Row) -> bool:
    return row.may_be_much and verdict(certificate, row) == row.word


def much_found(certificate: Certificate) -> str | None:
    """What the first box says of attacks; None where nothing must be accepted in words."""
    words = [row.word for row in must_be_accepted(certificate)]
    if not words:
        return None
    tried = certificate.get("attacks") or {}
    return ngettext(
        "{count} finding of attacks ({tried} tried) is {much}: see below.",
        "{count} findings of attacks ({tried} tried) are {much}: see below.",
        len(words),
        tried=sum(name in tried for name in registry.attacks()),
        much=how_much(words),
    )


def how_much(words: Collection[str]) -> str:
    """What findings that must be accepted are, by the word of each."""
    return gettext("“much”") if {*words} == {MUCH} else gettext("“much”, or may be")


def worst_first(certificate: Certificate) -> list[Row]:
    """The rows that matter most first: by the word, what it harms, and the figure; pages say so."""

    def place(row: Row) -> tuple[int, int, float]:
        return PLACES[row.word], row.question.harm, -(_parts(row.number)[0] or 0.0)

    return sorted(rows_of(certificate), key=place)


def _finding(certificate: Certificate, row: Row, accepted: Collection[str] | None) -> Finding:
    said, state = f"{row.says}.", ""
    if accepted is not None and _asks_for_words(certificate, row):
        state = "accepted" if row.says in accepted else "open"
    if row.word not in (MUCH, SOME, TOO_FEW) or state == "accepted":
        return Finding(row.word, said, "", state, row.attack)
    if row.word == TOO_FEW:
        return Finding(row.word, said, _more_tries(certificate, row), state, row.attack)
    helps = remedy(certificate, row.measure or row.helps, row.attribute)
    return Finding(row.word, said, f"{capitalised(helps)}.", state, row.attack)


def _more_tries(certificate: Certificate, row: Row) -> str:
    """What would try an attack more often on this release."""
    if row.attack not in NEEDS_CONTROL:
        return NO_MORE_TRIES
    control = certificate["attacks"].get("control")
    folds = control.get("folds") if isinstance(control, Mapping) else None
    return MORE_PEOPLE if folds in range(1, MOST_FOLDS) else A_CONTROL


def _singled_out(found: Findings) -> Iterator[Row]:
    attack = found.get("singling-out")
    if attack is None:
        return
    values, chance = attack["univariate"], attack["univariate_baseline"]
    sentence = gettext(
        "whoever looks in one column that others could know for its least or greatest value, or one"
        " shown by itself, finds exactly one person"
    )
    label = gettext("one value alone")
    found_share, by_chance = _parts(values)[0], _parts(chance)[0]
    gain = None if found_share is None or by_chance is None else found_share - by_chance
    how: Findings = {"chance": chance, "gain": gain, "helps": "ends_gain", "among": TRIES}
    yield Row(SINGLED_OUT, label, sentence, values, **how)
    sentence = gettext(
        "whoever looks for somebody at the least or greatest value that a class shows finds exactly"
        " one person"
    )
    label, why = gettext("the end of a range"), attack.get("why")
    shares = attack["isolate"], attack["control"], attack["interior"], attack["gain"]
    yield Row(SINGLED_OUT, label, sentence, *shares, "ends_gain", why=why, among=TRIES)
    for name, share in attack["alone"].items():
        known = shown = name
        if name == ALL_PLAIN:
            known = gettext("values of all columns that are published as they are")
            shown = gettext("all plain columns")
        sentence = gettext(
            "whoever also knows their {name} identifies them, since nobody else in their class has"
            " the same",
            name=known,
        )
        label = gettext("alone with {name}", name=shown)
        yield Row(SINGLED_OUT, label, sentence, share, measure="alone", attribute=name)


def _linked(found: Findings) -> Iterator[Row]:
    attack = found.get("linkability")
    if attack is not None:
        for one in (attack, *attack.get("others", [])):
            known, share, chance = ", ".join(one["known"]), one["success"], one["baseline"]
            sentence = gettext(
                "whoever has a list of names with {known}, and nothing else, finds their record",
                known=known,
            )
            asked: Findings = {"measure": "linkage" if one is attack else "", "helps": "linkage"}
            asked |= {"attack": "linkability"}
            label, why = gettext("finding a person's record"), one.get("why")
            yield Row(LINKED, label, sentence, share, chance=chance, why=why, **asked)
        yield from _linked_by_list(attack.get("external"))
    order = found.get("order")
    if order is not None:
        label = gettext("finding it by its place")
        sentence = gettext(
            "whoever knows their {column} finds them by the place of their row",
            column=order["column"],
        )
        shares = order["found"], order["others"], order["chance"], order["gain"]
        whom, why = gettext("trying it on others of their class"), order.get("why")
        asked = {"helps": "order", "others": whom, "attack": "order"}
        yield Row(LINKED, label, sentence, *shares, why=why, **asked)
    around = found.get("population")
    if around is not None:
        label, share = gettext("naming by the population"), around["marketer"]
        sentence = gettext(
            "whoever has a list of the population, judged by the {source}, names them correctly",
            source=around["source"],
        )
        asked = {"measure": "marketer", "among": gettext("records"), "attack": "population"}
        chance, why = around.get("baseline", {}).get("mean"), around.get("why")
        yield Row(LINKED, label, sentence, share, chance=chance, why=why, **asked)


def _linked_by_list(listed: Findings | None) -> Iterator[Row]:
    """Who is found by the list that was given."""
    if listed is not None:
        sentence = gettext(
            "whoever has the list that was given, with {known}, finds their record",
            known=", ".join(listed["known"]),
        )
        label, share = gettext("finding a person of the list"), listed["success"]
        row = Row(LINKED, label, sentence, share, helps="linkage", attack="linkability")
        yield replace(row, why=listed.get("why"))


def _matched(certificate: Certificate) -> Iterator[Row]:
    """Whom an attacker finds in linked tables who matches all that is known of a person."""
    found = (certificate.get("linked") or {}).get("matching")
    if found and found["tried"]:
        sentence = gettext(
            "whoever knows all that the policy says of a person in every table, and tries every"
            " published person with all their rows, is left with fewer than {k} who fit; the fewest"
            " were {least:,}; tried for {tried:,} of {people:,} people",
            k=certificate["together"]["asked"],
            **found,
        )
        share = found["below"] / found["tried"]
        yield Row(LINKED, gettext("matching people with all their rows"), sentence, share)


def naming_columns(certificate: Certificate) -> list[str]:
    """The columns that are published as they are and name people, or say where they are."""
    named = [w.column for w in certificate.warnings if w.code == PLAIN_NAMES_PEOPLE]
    return [name for name in named if name is not None]


def _linked_by_names(found: Findings) -> Iterator[Row]:
    """Who is found by columns that name people and are published as they are."""
    listed = (found.get("linkability") or {}).get("by_names")
    if listed is not None:
        names = gettext(" and ").join(listed["known"])
        sentence = gettext(
            "whoever has a list with their {names}, published as in the table, and all that others"
            " could know finds their record",
            names=names,
        )
        label = gettext("finding a person by {names}", names=names)
        about = listed["known"][0] if len(listed["known"]) == 1 else ALL_PLAIN
        yield Row(LINKED, label, sentence, listed["success"], attribute=about, helps="alone")


def _inferred(found: Findings, certificate: Certificate) -> Iterator[Row]:
    have_it = gettext("of the class have the same")
    if have_several_rows(certificate):
        have_it = gettext("of the people in the class have the same in one of their rows at least")
    for name, one in found.get("inference", {}).items():
        # none is called the best where none does better than others
        tried = max((one["attackers"] or {"": {}}).values(), key=_gain_of)
        member, control = tried.get("member"), tried.get("control")
        near = _near(one)
        label = gettext("guessing {name}", name=name)
        sentence = gettext(
            "whoever knows all that others could know of them guesses their {name}{near} correctly",
            name=name,
            near=near,
        )
        shares = member, control, one["baseline"], one["gain"]
        why = one.get("why")
        guesses = Row(INFERRED, label, sentence, *shares, "inference_gain", name, why)
        yield guesses
        sentence = gettext(
            "whoever finds their class is nearly certain of their {name}: at least 90 % {have_it}"
            "{near}",
            name=name,
            have_it=have_it,
            near=near.rstrip(","),
        )
        share, label = one["certain"], gettext("{name} nearly certain", name=name)
        asked: Findings = {"measure": "certain", "attribute": name}
        # whoever guesses a number as well of strangers learns little, however sure they are
        if near and float("-inf") < _gain_of(one) <= (_parts(share)[0] or 0.0):
            asked |= {"gain": one["gain"], "guesses": guesses}
        yield Row(INFERRED, label, sentence, share, **asked)


def _gain_of(attacker: Findings) -> float:
    gain = _parts(attacker.get("gain"))[0]
    return float("-inf") if gain is None else gain


def _near(one: Mapping[str, Any]) -> str:
    """How far off a guess of a number may be; empty of other values."""
    if not one.get("tolerance"):
        return ""
    share = one.get("tolerance_share")  # earlier certificates do not state it
    part = gettext("a part") if share is None else f"{100 * share:g} %"
    return gettext(", give or take {part} of its range,", part=part)


def _by_class(found: Findings) -> Iterator[Row]:
    """What the class of a person tells by itself."""
    for name, one in found.get("skewness", {}).items():
        sentence = gettext(
            "whoever finds their class sees their value of {name} at least ten times as often as in"
            " the table",
            name=name,
        )
        share, label = one["lifted"], gettext("{name} ten times as likely", name=name)
        asked: Findings = {"measure": "lifted", "attribute": name, "why": one.get("why")}
        yield Row(INFERRED, label, sentence, share, attack="skewness", **asked)
    for name, one in found.get("homogeneity", {}).items():
        sentence = gettext(
            "whoever finds their class knows their {name}, since all of it have the same", name=name
        )
        label, share = gettext("{name} certain", name=name), one["people"]
        why = one.get("why") if share is None else None  # else it is about what is similar
        asked = {"measure": "homogeneous", "attribute": name, "why": why}
        asked |= {"attack": "homogeneity", "chance": one["chance"]}
        yield Row(INFERRED, label, sentence, share, **asked)


def _member(found: Findings, counted: str) -> Iterator[Row]:
    attack = found.get("membership")
    if attack is None:
        return
    advantage = attack["advantage"]
    if advantage is None:
        yield Row(MEMBER, "membership", "", measure="membership", why=attack["why"])
        return
    share = _parts(advantage)[0]
    above = 100 * max(share or 0, 0)
    right, more = ("–", "–") if share is None else (f"{50 + 50 * share:.0f}", f"{above:.0f}")
    sentence = gettext(
        "{right} % of {counted}: whoever knows what others could know tells correctly whether they"
        " are in the release; tossing a coin, 50 %. The answer “is in it” is {more} points more"
        " frequent for those who are in it than for those who are not",
        counted=counted,
        right=right,
        more=more,
    )
    asked: Findings = {"measure": "membership", "others": gettext("its false alarms")}
    yield Row(MEMBER, "membership", sentence, gain=advantage, **asked)


def _together(found: Findings, certificate: Certificate) -> Iterator[Row]:
    attack = found.get("intersection")
    if attack is None:
        return
    k = next((p["asked"] for p in certificate["promises"] if p["model"] == "k-anonymity"), None)
    linked = attack["linked"]
    if linked is None:
        yield Row(TOGETHER, "intersection", "", why=attack["why"])
        return
    earlier = attack["releases"] - 1
    others = (
        gettext("the earlier release")
        if earlier == 1
        else gettext("{earlier} earlier releases", earlier=earlier)
    )
    shares = [linked["below_k"], *(one["certain"] for one in linked["attributes"].values())]
    if all(share is None or share["share"] is None for share in shares):
        why = gettext("nobody who is shown here is shown in {others}, too", others=others)
        yield Row(TOGETHER, "intersection", "", why=why)
        return
    if linked["below_k"] is not None:
        sentence = gettext(
            "whoever also has {others}, and knows which rows are one person's, finds them among"
            " fewer than {k}",
            others=others,
            k=k,
        )
        label = gettext("among fewer than {k}", k=k)
        yield Row(TOGETHER, label, sentence, linked["below_k"], helps="alone_after")
    yield from _sure_together(attack["linked"], others, attack["applies"] == "unlinked")
    if attack["applies"] == "unlinked":
        yield from _sure_together(attack["unlinked"], others)


def _sure_together(found: Findings, others: str, knows_rows: bool = False) -> Iterator[Row]:
    for name, one in found["attributes"].items():
        share, label = one["certain"], gettext("certain {name}", name=name)
        sentence = (
            gettext(
                "whoever also has {others}, and knows which rows are one person's, is sure of"
                " their {name}",
                others=others,
                name=name,
            )
            if knows_rows
            else gettext(
                "whoever also has {others} is sure of their {name}", others=others, name=name
            )
        )
        yield Row(TOGETHER, label, sentence, share, measure="certain_after", attribute=name)


def _method(found: Findings) -> Iterator[Row]:
    attack = found.get("minimality")
    if attack is None:
        return
    label, share = gettext("a true value worked out"), attack["implied"]
    sentence = gettext("whoever knows the method works out a true value, though not whose")
    cells, why = gettext("coarsened cells"), attack.get("why")
    yield Row(METHOD, label, sentence, share, measure="implied", why=why, among=cells)
    for name, one in (attack.get("replay") or {}).items():
        if isinstance(one, Mapping) and (share := one.get("excluded")) is not None:
            label = gettext("ways of {name}", name=name)
            sentence = gettext(
                "whoever knows the method rules out that {name} lay so in classes left whole",
                name=name,
            )
            asked = {"measure": "excluded", "attribute": name, "among": gettext("ways")}
            yield Row(METHOD, label, sentence, share, **asked)


def _parts(number: Number) -> tuple[float | None, list[float] | None]:
    """A share and its interval."""
    if isinstance(number, Mapping):
        return number["share"], number["ci"]
    return number, None


def _share_text(number: Number) -> str:
    """A share in percent, as a sentence has it; 0 % and 100 % are nobody and everybody."""
    share = _parts(number)[0]
    if share is None:
        return gettext(NOT_MEASURED)
    if 0 < share < 0.001:
        return gettext("less than {percent} %", percent=0.1)
    if 0.999 < share < 1:
        return gettext("more than {percent} %", percent=99.9)
    return f"{100 * share:.{int(0 < share < 0.01 or 0.99 < share < 1)}f} %"


def interval_text(number: Number) -> str:
    """A share with its interval, as a table shows it."""
    share, ends = _figure(number)
    return f"{share} ({ends})" if ends else share or NOT_MEASURED


def page_content(certificate: Certificate) -> list[Content]:
    """The rows by question, as the template takes them; says so where none was tried."""
    rows = rows_of(certificate)
    return [
        {
            "question": question.text,
            "rows": [_cells(certificate, row) for row in rows if row.question == question]
            or [_cells(certificate, _not_tried(certificate, question))],
        }
        for question in QUESTIONS
    ]


def _not_tried(certificate: Certificate, question: Question) -> Row:
    """The row of a question that no attack was tried on; of linked tables, people are matched
    alone.
    """
    if certificate.get("linked") and question != LINKED:
        return Row(question, gettext("not tried"), "", why=NONE_ON_LINKED)
    reasons = _reasons(certificate)
    whys = (reasons[name] for name in question.attacks if name in reasons)
    return Row(question, gettext("not tried"), "", why=next(whys, NOT_ASKED))


def _cells(certificate: Certificate, row: Row) -> Content:
    threshold = acceptance(certificate, row)
    return {
        "label": row.label if row.is_measured else "",
        "sentence": row.line,
        "figures": [_figure(number) for number in (row.member, row.control, row.chance)],
        "gain": row.difference,
        "at_most": "" if threshold is None else percent_text(threshold["at_most"]),
        "word": verdict(certificate, row),
        "why": row.why if row.is_measured else None,
    }


def _figure(number: Number) -> tuple[str, str]:
    """A share and, apart, its interval; empty where there is none."""
    share, ends = _parts(number)
    if share is None:
        return "", ""
    if ends is None:
        return percent_text(share), ""
    least, most = map(percent_text, ends)
    return percent_text(share), gettext("{least} to {most}", least=least, most=most)


def bars(certificate: Certificate) -> list[tuple[str, list[tuple[float, float, float] | None]]]:
    """For a chart: of each row that found anybody the shares in percent, with their intervals."""
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


def attack_section(certificate: Certificate, accepted: Collection[str] | None = None) -> Content:
    """What `attacks.html.j2` takes. accepted: of `ranked`."""
    found = bars(certificate)
    return {
        "attacks": page_content(certificate),
        "attacks_opening": OPENING,
        "attacks_legend": LEGEND,
        "is_tried": bool(rows_of(certificate)),
        "ranked": ranked(certificate, accepted),
        "more_found": (more := [row.word for row in worst_first(certificate)[MOST_RANKED:]]),
        "more_much": more.count(MUCH),
        "tried": which_tried(certificate),
        "much_found": much_found(certificate),
        "attack_bars": charts.attacks_chart(found) if found else None,
        "control": (certificate.get("attacks") or {}).get("control"),
    }


UNASKED = {
    "earlier": gettext("needs another release of the same people"),
    "population": gettext("needs a table of the population"),
}
"""Why nobody asked for an attack, by what it needs."""


def which_tried(certificate: Certificate) -> str:
    """How many attacks were tried, which were not, and why; empty if all were, or none."""
    found = certificate.get("attacks") or {}
    if certificate.get("linked") and rows_of(certificate):
        others = ", ".join(sorted({*registry.attacks()} - {"linkability"}))
        return gettext(
            "People were matched with all their rows, as linkability does; not tried on linked"
            " tables: {others}.",
            others=others.replace("-", " "),
        )
    lacking: dict[str, list[str]] = {}
    for name, why in _reasons(certificate).items():
        lacking.setdefault(why, []).append(name.replace("-", " "))
    if not lacking:
        return ""
    known = registry.attacks()
    return gettext(
        "{tried} of {all} attacks were tried, and one may find several things; not tried:"
        " {lacking}.",
        tried=len({*known} & {*found}),
        all=len(known),
        lacking="; ".join(f"{', '.join(names)} ({why})" for why, names in lacking.items()),
    )


def _reasons(certificate: Certificate) -> dict[str, str]:
    """Why each attack that was not tried was not, by its name; empty where none was tried."""
    found = certificate.get("attacks") or {}
    known = registry.attacks() if found else {}
    beside = gettext("judged by itself, with the other releases of these people")
    unasked = UNASKED | ({"earlier": beside} if certificate.get("beside") else {})
    reasons = {}
    for name in sorted({*known} - {*found}):
        needs = (unasked[need] for need in known[name].needs if need in unasked)
        reasons[name] = found.get("skipped", {}).get(name) or next(needs, NOT_ASKED)
    return reasons
