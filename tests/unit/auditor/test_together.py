"""Promises over some columns each, and what all quasi-identifiers tell together; who is counted."""

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import naive
import shoal as library
from page_text import on_one_line
from sample_policies import content_of
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import unit
from shoal.data.warnings import ReleaseWarning

SETS = [
    {"model": "k-anonymity", "k": 2, "attributes": ["sex"]},
    {"model": "k-anonymity", "k": 2, "attributes": ["job"]},
]
PAIRS = pl.DataFrame({"sex": ["m", "m", "f", "f"], "job": ["a", "b", "a", "b"]})
TEXT = (
    "Every promise holds on its own columns. All quasi-identifiers together (sex, job): classes of"
    " 1 record, 4 of 4 alone; whoever knows them all can pick these out"
)


def policy(promises=SETS, **attributes):
    return content_of({"sex": "quasi", "job": "quasi"} | attributes, promises=promises)


@pytest.fixture
def folder(folder):
    PAIRS.write_csv("t.csv")
    (folder / "p.yaml").write_text(yaml.safe_dump(policy()))
    return folder


def test_each_set_has_groups_of_its_own():
    certificate = library.audit(PAIRS, policy())
    assert certificate.holds
    for promise in certificate["promises"]:
        assert promise["classes"] == {"count": 2, "min": 2, "mean": 2.0, "max": 2}
        assert promise["risk"] == {"max": 0.5, "mean": 0.5}
    assert certificate["classes"] == {"count": 4, "min": 1, "mean": 1.0, "max": 1}
    counts = {"asked": 2, "min": 1, "alone": 4, "below": 4, "people": 4, "alone_if_known": 0}
    assert certificate["together"] == {"attributes": ["sex", "job"], **counts}
    (warning,) = certificate["warnings"]
    assert warning == {"code": "together-below-k", "severity": "grave", "text": TEXT}


def test_the_command_warns_draws_amber_and_fails_where_it_is_required(folder, shoal):
    """The attack: a green box over k = 2, and everybody alone in sex and job together."""
    shown = ("audit", "t.csv", "-p", "p.yaml", "-q")
    done = shoal(*shown, "--report", "r.html")
    assert (done.status, done.err) == (0, f"shoal: grave: {TEXT}\n")
    page = on_one_line((folder / "r.html").read_text())
    assert '<div class="verdict amber">' in page
    verdict = page.partition('<div class="verdict amber">')[2].partition("<dl")[0]
    assert "<strong>Every promise holds; 1 grave finding.</strong>" in verdict
    assert f"Grave: {TEXT}." in verdict
    assert page.count(TEXT) == 2  # in the box, and in the certificate
    assert "4 of 4 alone" in page
    assert "2 classes of 2" in page
    required = {"require_together": True}
    (folder / "p.yaml").write_text(yaml.safe_dump(policy() | required))
    assert shoal(*shown).status == 1
    other = policy([SETS[0]], job={"role": "plain"}) | required
    (folder / "p.yaml").write_text(yaml.safe_dump(other))
    done = shoal(*shown, "--report", "r.html", status=0)
    assert "'job' is not protected: if it is known too, 4 of 4 records are alone" in done.err


def test_publish_may_require_it(folder, shoal):
    asked = policy() | {"method": {"name": "full-domain"}}
    (folder / "p.yaml").write_text(yaml.safe_dump(asked))
    (folder / "strict.yaml").write_text(yaml.safe_dump(asked | {"require_together": True}))
    shown = ("publish", "t.csv", "-p", "p.yaml", "-o", "out.csv", "-q")
    found = shoal(*shown, "-p", "strict.yaml", status=1)
    assert "all quasi-identifiers together: k = 2 asked, 1 measured, 4 of 4 below" in found.err
    assert not (folder / "out.csv").exists()
    assert shoal(*shown).status == 0
    with pytest.raises(library.PromiseError, match="all quasi-identifiers together"):
        library.publish(PAIRS, folder / "p.yaml", require_together=True)
    with pytest.raises(library.InputError, match="require_together: is judged by 'publish' and"):
        library.Policy.load(folder / "strict.yaml").check_files("stream")
    with pytest.warns(ReleaseWarning, match="4 of 4 alone"):
        library.publish(PAIRS, folder / "p.yaml")


def test_nobody_is_alone_but_too_few_are_together():
    frame = pl.DataFrame({"sex": list("mmmmffff"), "job": list("aabbaabb")})
    threes = [promise | {"k": 3} for promise in SETS]
    (warning,) = library.audit(frame, policy(threes)).warnings
    assert "classes of 2 records, 8 of 8 in classes of fewer than k = 3;" in warning.text


def test_a_broken_promise_is_no_half_truth():
    certificate = library.audit(PAIRS, policy([SETS[0], SETS[1] | {"k": 3}]))
    assert not certificate.holds
    assert certificate["warnings"] == []


ROWS = st.lists(
    st.tuples(st.sampled_from("mf*"), st.sampled_from("abc*"), st.integers(0, 4)), min_size=1
)


@given(ROWS, st.booleans())
def test_sets_and_together_by_definition(rows, has_subject):
    names = ("sex", "job", "who")
    frame = pl.DataFrame(
        [(s, j, str(w)) for s, j, w in rows], schema=dict.fromkeys(names, pl.String), orient="row"
    )
    content = policy(who={"role": "subject" if has_subject else "plain"})
    certificate = library.audit(frame, content)
    dicts = [dict(zip(names, row, strict=True)) for row in rows]
    labels = naive.classes_by_cells(dicts, ["sex", "job"], [])
    people = [row[2] for row in rows] if has_subject else list(range(len(rows)))
    for promise, name in zip(certificate["promises"], ("sex", "job"), strict=True):
        groups = naive.people_by_cells(dicts, labels, people, [name])
        sizes = [len(group) for group in groups]
        assert promise["classes"]["count"] == len(sizes)
        assert promise["classes"]["min"] == min(sizes, default=None)
        assert promise["risk"]["mean"] == (
            pytest.approx(len(sizes) / sum(sizes)) if sizes else None
        )
    groups = naive.people_by_cells(dicts, labels, people, ["sex", "job"])
    alone = set().union(*(group for group in groups if len(group) == 1))
    found = certificate["together"]
    assert (found["alone"], found["below"]) == (len(alone), len(alone))
    assert found["min"] == min(map(len, groups), default=None)
    assert found["people"] == len(set().union(*groups))


@pytest.mark.parametrize(
    ("subject", "shows_it", "expected", "first"),
    [
        (None, False, "assumed", "1 record, each taken to be a person"),
        ("who", True, "known", "1 person"),
        ("who", False, "unknown", "1 row"),
    ],
)
def test_who_is_counted_is_said_everywhere(folder, shoal, subject, shows_it, expected, first):
    frame = PAIRS.with_columns(who=pl.Series(list("1234"))) if shows_it else PAIRS
    frame.write_csv("t.csv")
    more = {} if subject is None else {"who": {"role": "subject"}}
    (folder / "p.yaml").write_text(yaml.safe_dump(policy([SETS[0]], **more)))
    done = shoal("audit", "t.csv", "-p", "p.yaml", "-o", "c.json", "--report", "r.html")
    assert first in done.err
    certificate = Certificate.load(folder / "c.json")
    assert certificate["people"] == expected
    assert (certificate["counted"] == "rows") == (expected == "unknown")
    word = unit(certificate).many
    assert f"Smallest, in {word}<" in on_one_line((folder / "r.html").read_text())


def test_a_certificate_of_before():
    assert unit({"counted": "rows"}).many == "rows"
    assert unit({"counted": "subjects"}).many == "people"
