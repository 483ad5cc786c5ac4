"""People whom several columns name together, for every method of every verb from the registry.

A policy with `subject: [a, b]` must release the very bytes of the table in which one column, of the
role subject, names each combination.
"""

import json

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from republish_cases import append, wearers
from republish_cases import policy as ledger_policy
from shoal.attacks.run.attack import audit_ledger
from shoal.data.progress import no_progress
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.streams.options import StreamOptions
from shoal.streams.run import stream_file
from strategies import policies_with_tables, without_means
from stream_cases import policy_of, run, stream_of
from thorough import comparators_long, examples

METHODS = registry.methods().values()
TABLES = [m for m in METHODS if m.verb == "publish"]
STREAMS = sorted(m.name for m in METHODS if m.verb == "stream")
LEDGERS = sorted(m.name for m in METHODS if m.verb == "republish")
DIVERSE = {"model": "alpha-k-anonymity", "attribute": "ill", "alpha": 0.5, "k": 2}
WRITTEN = ("{}", " {} ", "\u200b{}", "\ufeff{}")
"""Ways to write one name: blanks around it, and signs that nobody sees."""


def parts_of(names: list[str]) -> dict[str, tuple[str, str]]:
    """Two parts for each name, so that neither is the name and many are joined to one text."""
    return {
        name: ("g" + "1" * (at % 3 + 1), "1" * (at // 3 + 1))
        for at, name in enumerate(dict.fromkeys(names))
    }


def apart(content: dict, frame: pl.DataFrame, parts: dict) -> tuple[dict, pl.DataFrame]:
    """Two columns in the place of one that names people, each name written in several ways."""
    rows = [
        tuple(WRITTEN[(at + j) % len(WRITTEN)].format(part) for j, part in enumerate(parts[name]))
        for at, name in enumerate(frame["who"].to_list())
    ]
    attributes = {key: {"role": "identifier"} for key in ("house", "member")}
    attributes |= {name: a for name, a in content["attributes"].items() if name != "who"}
    columns = pl.DataFrame(rows, schema=["house", "member"], orient="row")
    together = pl.concat([columns, frame.drop("who")], how="horizontal")
    return content | {"attributes": attributes, "subject": ["house", "member"]}, together


def joined(content: dict, frame: pl.DataFrame, parts: dict) -> tuple[dict, pl.DataFrame]:
    """The same table with one more column, which names the combinations."""
    content, together = apart(content, frame, parts)
    del content["subject"]
    attributes = content["attributes"] | {"who": {"role": "subject"}}
    text = {name: f"{len(a)}:{a}{len(b)}:{b}" for name, (a, b) in parts.items()}
    who = frame["who"].replace_strict(text)
    return content | {"attributes": attributes}, together.with_columns(who)


def measured(certificate) -> dict:
    """All that a certificate states of a release but its names, hashes and time."""
    gone = ("policy", "columns", "seconds", "date", "input", "build", "scale", "output", "ledger")
    stated = json.dumps({key: value for key, value in certificate.items() if key not in gone})
    return json.loads(stated.replace("house + member", "who"))


@pytest.mark.parametrize("method", comparators_long(TABLES), ids=lambda m: m.name)
@settings(max_examples=examples(4, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_table_is_published_as_if_one_column_named_each_person(method, data):
    content, frame = data.draw(policies_with_tables())
    if "who" not in frame.columns:
        content["attributes"]["who"] = {"role": "subject"}
        people = st.lists(st.integers(0, 9).map(str), min_size=frame.height, max_size=frame.height)
        frame = frame.with_columns(who=pl.Series(data.draw(people), dtype=pl.String))
    content = without_means(content) | {"method": {"name": method.name}}
    if method.renders_two_tables:
        content = _in_two_tables(content)
    parts = parts_of(frame["who"].to_list())
    found = []
    for form in (joined, apart):
        policy, table = form(content, frame, parts)
        try:
            released = shoal.publish(table, policy)
        except (shoal.InfeasibleError, shoal.InputError) as refused:
            found.append(str(refused))
            continue
        found.append((_text(released.data), measured(released.certificate)))
        if not method.renders_two_tables:
            _count_again(released, policy, table, frame["who"].to_list())
    assert found[0] == found[1]


def _in_two_tables(content: dict) -> dict:
    """What a method can do that shows quasi-identifiers as they are."""
    attributes = {n: a for n, a in content["attributes"].items() if n != "pay"}
    content = content | {"attributes": {**attributes, "pay": {"role": "drop"}}}
    return content | {"promises": [DIVERSE], "missing": "value", "render": {}}


def _text(data) -> list[str]:
    return [one.write_csv() for one in (data if isinstance(data, tuple) else (data,))]


def _count_again(released, policy: dict, table: pl.DataFrame, people: list[str]) -> None:
    """A slow truth: distinct combinations behind each published class, and an audit of the table.

    Only where rows stand in the order of the input is it known whose they are.
    """
    if policy["render"]["order"] != "input":
        return
    sizes = {}
    for label, person in zip(released.classes.tolist(), people, strict=True):
        sizes.setdefault(label, set()).add(person)
    sizes.pop(-1, None)
    shown = released.certificate["classes"]
    assert shown["min"] == min(map(len, sizes.values()), default=None)
    assert shown["max"] == max(map(len, sizes.values()), default=None)
    again = shoal.audit(released.data, policy, table, trace=released.trace)
    assert again.holds
    assert again["counted"] == "subjects"
    assert again["classes"] == {key: shown[key] for key in shown if key != "bound"}  # the method's


@pytest.mark.parametrize("method", comparators_long(STREAMS))
def test_a_stream_is_published_as_if_one_column_named_each_person(method):
    frame = stream_of(200, people=60)
    content = policy_of(method, delta=40).model.model_dump(exclude_unset=True)
    parts = parts_of(frame["who"].to_list())
    one, several = (form(content, frame, parts) for form in (joined, apart))
    expected = run(Policy.from_dict(one[0]), one[1])
    policy = Policy.from_dict(several[0])
    assert run(policy, several[1]).bytes == expected.bytes
    assert run(policy, several[1], chunk=33, restart=True).bytes == expected.bytes


@pytest.mark.parametrize("method", comparators_long(LEDGERS))
def test_a_ledger_grows_as_if_one_column_named_each_person(tmp_path, method):
    releases = [wearers(30, seed) for seed in (1, 2, 3)]
    asked = ledger_policy(method).model.model_dump(exclude_unset=True)
    asked["attributes"]["beat"] = {"role": "drop"}
    parts = parts_of([name for one in releases for name in one["who"].to_list()])
    for form in (joined, apart):
        (folder := tmp_path / form.__name__).mkdir()
        for one in releases:
            content, frame = form(asked, one, parts)
            append(folder / "L", frame, Policy.from_dict(content), allow_leaks=True)
    first, second = (sorted((tmp_path / f.__name__ / "L").glob("0*")) for f in (joined, apart))
    assert len(first) == len(second) == 3
    for one, other in zip(first, second, strict=True):
        assert (one / "data.csv").read_bytes() == (other / "data.csv").read_bytes()
        stated = [
            measured(json.loads((folder / "certificate.json").read_text()))
            for folder in (one, other)
        ]
        assert stated[0] == stated[1]
    of_one, of_several = (audit_ledger(tmp_path / f.__name__ / "L") for f in (joined, apart))
    assert of_several.knows_people
    assert of_several.holds == of_one.holds
    for one, other in zip(of_one.releases, of_several.releases, strict=True):
        assert measured(one.certificate) == measured(other.certificate)
        assert one.violations == other.violations


def test_the_trace_of_a_stream_is_audited_and_attacked_by_combinations(tmp_path):
    frame = stream_of(150, people=50)
    content = policy_of("fads", delta=40).model.model_dump(exclude_unset=True)
    content, table = apart(content, frame, parts_of(frame["who"].to_list()))
    table.write_csv(tmp_path / "source.csv")
    trace = tmp_path / "trace.jsonl"
    options = StreamOptions(
        str(tmp_path / "source.csv"), str(tmp_path / "out.csv"), trace=str(trace)
    )
    certificate, _ = stream_file(options, Policy.from_dict(content), progress=no_progress)
    assert certificate["people"] == "known"
    released = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    attacked = shoal.attack(released, content, table, ["homogeneity"], trace=trace)
    assert not any(attacked["faults"].values())
    assert attacked["subjects"] == frame["who"].n_unique()
