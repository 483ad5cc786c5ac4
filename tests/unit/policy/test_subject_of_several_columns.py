"""A person named by several columns together: what a policy may say, and whom it counts."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import shoal as library
from sample_policies import content_of
from shoal.advise.risk import risk
from shoal.auditor.description import policy_sha256
from shoal.data.person_names import named_together, person_name
from shoal.data.table import encode_text
from shoal.errors import InputError
from shoal.policy.loading import json_schema
from shoal.policy.policy import Policy

AGE = {"role": "quasi", "type": "number", "domain": [0, 99]}
COLUMNS = {"house": "identifier", "member": "identifier", "age": AGE, "ill": "sensitive"}


def asked(subject=("house", "member"), /, method="mondrian", **columns) -> dict:
    named = {} if subject is None else {"subject": list(subject)}
    more = {"render": {"order": "input"}, "method": {"name": method}}
    return content_of(COLUMNS | columns, 3, **more, **named)


CONTENT = asked()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (asked(["house"]), "names fewer than two columns; delete"),
        (asked([]), "names fewer than two columns; delete"),
        (asked(["house"] * 2), "names fewer than two columns"),
        (CONTENT | {"subject": "house"}, "must be a list"),
        (asked(["house", "member", "house"]), "names a column twice; name each once"),
        (asked(["house", "membr"]), "'membr' is not in the policy; did you mean 'member'?"),
        (
            asked(["house", "age"]),
            "attribute 'age' has the role 'quasi'; give it the role 'identifier'",
        ),
        (
            asked(house="subject"),
            "attribute 'house' has the role 'subject'; give it the role 'identifier', or delete",
        ),
        (
            asked(**{"house + member": "drop"}),
            "attribute 'house + member': is what 'subject' names its combinations of columns",
        ),
    ],
)
def test_what_can_not_name_a_person_is_refused_in_one_line(content, said):
    with pytest.raises(InputError) as refused:
        Policy.from_dict(content)
    assert str(refused.value).removeprefix("policy, subject: ").startswith(said)
    assert not refused.value.findings


def test_a_check_with_data_names_no_column_that_is_made_of_others(folder, shoal):
    Path("p.yaml").write_text(yaml.safe_dump(asked(["house", "age"])))
    table().write_csv("in.csv")
    (said,) = shoal(*"policy check p.yaml in.csv".split(), status=2).err.splitlines()
    assert "attribute 'age' has the role 'quasi'; give it the role 'identifier'" in said


def test_the_key_is_kept_and_what_is_made_of_it_is_written_nowhere(tmp_path):
    policy = Policy.from_dict(CONTENT)
    assert policy.model.model_dump(mode="json", exclude_unset=True) == CONTENT
    policy.with_k(5).save(tmp_path / "p.yaml")
    assert yaml.safe_load((tmp_path / "p.yaml").read_text())["subject"] == ["house", "member"]
    assert Policy.load(tmp_path / "p.yaml").subject == policy.subject
    assert json_schema()["properties"]["subject"]["anyOf"][0]["type"] == "array"


def test_a_policy_without_it_is_what_it_was():
    plain = asked(None, house="subject")
    policy = Policy.from_dict(plain)
    assert "subject" not in policy.model.model_dump()
    assert policy_sha256(policy) == policy_sha256(Policy.from_dict(plain | {"subject": None}))


names = st.text(st.sampled_from('ab1:,"\\\u200b\ufeff Aå\u030a|\x1f'), max_size=4)


@given(rows=st.lists(st.tuples(names, names, names), min_size=1, max_size=30))
def test_people_are_distinct_tuples_of_names(rows):
    """A slow truth: tuples in a dict."""
    columns = [encode_text(pl.Series("c", list(cells))) for cells in zip(*rows, strict=True)]
    people = named_together("person", columns, {"a"})
    texts = [people.cells[code] for code in people.codes.tolist()]
    tuples = [tuple(map(person_name, row)) for row in rows]
    assert [not text for text in texts] == [bool({"", "a"} & {*one}) for one in tuples]
    assert all(person_name(text) == text for text in texts)
    known = {one: text for one, text in zip(tuples, texts, strict=True) if text}
    assert all(not text or known[one] == text for one, text in zip(tuples, texts, strict=True))
    assert len({*known.values()}) == len(known)
    assert list(people.cells) == sorted({*texts})


def table(n: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    bounds = {"house": (0, 9), "member": (1, 4), "age": (0, 99)}
    columns = {name: rng.integers(*ends, n).astype(str) for name, ends in bounds.items()}
    return pl.DataFrame(columns | {"ill": rng.choice(["u", "v"], n)})


def test_publishing_counts_the_combinations():
    frame = table()
    certificate = library.publish(frame, CONTENT).certificate
    assert certificate["subjects"] == frame.select("house", "member").n_unique()
    assert certificate["people"] == "known"
    roles = {column["name"]: column["role"] for column in certificate["columns"]}
    assert roles == {"age": "quasi", "ill": "sensitive", "house": "subject", "member": "subject"}


@pytest.mark.parametrize("missing", [None, "", "  ", "NA"])
def test_a_record_without_one_of_the_names_has_no_person(missing):
    frame = table()
    frame[3, "member"] = missing
    content = CONTENT | {"missing_values": ["", "NA"]}
    with pytest.raises(InputError, match=r"'house \+ member': 1 record without a subject"):
        library.publish(frame, content)
    stream = library.stream(content, method="fads", delta=10)
    with pytest.raises(InputError, match="has no subject"):
        stream.push(frame)


def test_a_column_that_lacks_and_one_with_the_name_that_is_made_are_refused_by_their_names():
    with pytest.raises(InputError) as refused:
        library.publish(table().drop("member"), CONTENT)
    assert str(refused.value).startswith("column 'member': in the policy, not in the data")
    assert not refused.value.findings
    frame = table().with_columns(pl.lit("1").alias("house + member"))
    with pytest.raises(InputError, match=r"column 'house \+ member': is what 'subject' names"):
        library.publish(frame, CONTENT | {"other": "drop"})


def test_a_release_that_still_holds_the_columns_is_counted_in_people():
    whole, part = (library.audit(frame, CONTENT) for frame in (table(), table().drop("house")))
    assert (whole["counted"], part["counted"]) == ("subjects", "rows")
    assert whole["subjects"] == table().select("house", "member").n_unique()
    assert whole["faults"]["not_removed"] == 2


def test_files_are_published_audited_verified_and_checked_by_commands(folder, shoal):
    table().write_csv("t.csv")
    (folder / "p.yaml").write_text(yaml.safe_dump(CONTENT))
    people = table().select("house", "member").n_unique()
    assert shoal("policy", "check", "p.yaml", "t.csv").status == 0
    assert shoal("publish", "t.csv", "-p", "p.yaml", "-o", "o.csv", "--attack", "all").status == 0
    stated = json.loads((folder / "o.csv.certificate.json").read_text())
    assert stated["subjects"] == people
    shoal("verify", "o.csv", "-p", "p.yaml", "--original", "t.csv", status=0)
    audit = shoal("audit", "o.csv", "-p", "p.yaml", "--original", "t.csv", "--json")
    assert json.loads(audit.out)["subjects"] == people
    assert risk("t.csv", "p.yaml").people == people
    assert shoal("profile", "t.csv", "-p", "p.yaml").status == 0
    shoal("compare", "t.csv", "-p", "p.yaml", "--methods", "mondrian", "--ks", "3", status=0)


def test_lines_of_json_that_lack_one_of_the_names_are_set_aside(folder, shoal):
    (folder / "p.yaml").write_text(yaml.safe_dump(asked(method="fads")))
    rows = table().to_dicts()
    del rows[0]["member"], rows[7]["house"]
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = shoal("stream", "t.jsonl", "-p", "p.yaml", "-o", "o.jsonl", "--dead-letters", "d.jsonl")
    assert done.status == 0, done.err
    bad = [json.loads(line) for line in (folder / "d.jsonl").read_text().splitlines()]
    assert [one["record"] for one in bad] == [0, 7]
    assert len((folder / "o.jsonl").read_text().splitlines()) <= 58
