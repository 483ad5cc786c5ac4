"""Linked tables on pages: the picture of how they hang together, and each table in sentences."""

from __future__ import annotations

import re

from shoal.auditor.dossier.context import read_context
from shoal.auditor.dossier.dossier import DEFAULT, unanswered
from shoal.data.certificate import Certificate
from shoal.reports.attacks import page_content, rows_of
from shoal.reports.in_short import is_of_rows_alike
from shoal.reports.linked import (
    Entity,
    entities_of,
    entity_picture,
    paid_lines,
    table_findings,
)


def certificate(below: int = 0, matching: dict | None = None, **found: object) -> Certificate:
    def table(name, parent, known, came, shown):
        rows = {"in": came, "published": shown, "withheld": came - shown}
        return {"name": name, "parent": parent, "known": known, "rows": rows}

    exposed = [("people", "all", 0), ("visits", "2", below), ("visits", "all", None)]
    return Certificate(
        {
            "together": {"asked": 5},
            "tables": [
                table("people", None, "all", 40, 40),
                table("visits", "people", "all", 90, 81),
                table("drugs", "visits", "count", 100, 99),
            ],
            "linked": {
                "exposed": [{"table": t, "known": k, "below": b} for t, k, b in exposed],
                "matching": matching,
                **found,
            },
        }
    )


def test_every_table_stands_below_the_one_that_its_rows_belong_to():
    shuffled = [
        Entity("drugs", "visits", ["9 rows"]),
        Entity("patients", None, ["3 people"], is_people=True),
        Entity("visits", "patients", ["5 rows"]),
    ]
    picture = entity_picture(shuffled)
    names = re.findall(r'class="strong" x="(\d+)" y="(\d+)">(\w+)<', picture)
    assert [name for _, _, name in names] == ["patients", "visits", "drugs"]
    edges = [int(x) for x, _, _ in names]
    assert edges == sorted(set(edges))
    assert picture.count('<path d="M') == 3  # the two links, and a person's shoulders


def test_the_picture_says_in_words_what_it_shows_and_escapes_names():
    picture = entity_picture([Entity("<b>", None, ["3 people"], is_people=True)])
    assert 'aria-label="&lt;b&gt;: 3 people"' in picture
    assert "<b>" not in picture


def test_a_table_that_nobody_has_linked_is_drawn_apart():
    picture = entity_picture(
        [Entity("patients", None, [], is_people=True), Entity("bills", None, [])]
    )
    assert 'class="loose"' in picture
    assert picture.count("<path") == 1


def test_each_table_says_who_is_betrayed_by_it():
    people, visits, drugs = table_findings(certificate(below=7))
    assert people.lines == ["Known people's own cells: everybody hides among at least 5."]
    assert visits.lines == [
        "Known any 2 rows of visits: 7 people hide among fewer than 5.",
        "Known all rows of visits: not judged, too many choices of rows.",
    ]
    assert drugs.lines == []


def test_who_pays_is_said_of_each_table_as_far_as_it_is_known():
    visits, drugs = paid_lines(certificate())  # audited by who does not know whose row is whose
    assert visits.startswith("9 of 90 rows of visits are withheld")
    assert drugs == "1 of 100 rows of drugs is withheld: not everybody in its class has such a row."
    people = {"visits": {"losing": 7, "without": 2}, "drugs": {"losing": 1, "without": 0}}
    most, visits, drugs = paid_lines(
        certificate(paid={"tenth": 0.5, "half": 0.125, "people": people})
    )
    assert "lose 50.0 % of their detail" in most
    assert most.endswith("the half who lose least, 12.5 %.")
    assert visits.endswith("People who lose such rows: 7; of these, without any left: 2.")
    assert drugs.endswith("People who lose such rows: 1; of these, without any left: 0.")


def test_people_are_drawn_under_the_name_that_their_owner_gave_them():
    names = [(one.name, one.parent) for one in entities_of(certificate(), "patients")]
    assert names == [("patients", None), ("visits", "patients"), ("drugs", "visits")]


def test_matching_people_with_all_their_rows_is_an_attack_like_any_other():
    assert rows_of(certificate()) == []
    safe = {"tried": 40, "people": 40, "below": 0, "least": 5}
    (row,) = rows_of(certificate(matching=safe))
    assert row.word == "none"
    (row,) = rows_of(certificate(matching=safe | {"below": 12, "least": 1}))
    assert row.word == "much"
    assert "fewer than 5" in row.says
    assert row.says.endswith("tried for 40 of 40 people")


def test_a_dossier_lacks_what_no_attack_tries_on_linked_tables_for_one_reason():
    safe = {"tried": 40, "people": 40, "below": 0, "least": 5}
    context = read_context({"version": 1}).context
    for matching in (None, safe):
        own = certificate(matching=matching)
        lacks = {
            field.rpartition(".")[2]: lack
            for field, lack in unanswered(own, context, DEFAULT).items()
            if field.startswith("certificate.attacks")
        }
        none = "no attack tries this on linked tables"
        assert lacks.pop("singling-out") == lacks.pop("inference") == none
        assert [*lacks] == ([] if matching else ["linkability"])
        rows = [row["sentence"] for part in page_content(own, True) for row in part["rows"]]
        assert sum(none in said for said in rows) == 5
        assert sum("not asked for" in said for said in rows) == (not matching)


def test_a_promise_of_rows_is_measured_among_rows_that_look_alike():
    def is_so(model: str, column: str) -> bool:
        return is_of_rows_alike(certificate(), {"model": model, "attributes": [column]})

    assert is_so("l-diversity", "drugs.drug")
    assert not is_so("l-diversity", "blood")
    assert not is_so("holder-share", "drugs.drug")  # which counts people, with and without
