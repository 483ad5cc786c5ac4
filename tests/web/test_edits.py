"""Each control of the page as an edit of the policy."""

from urllib.parse import quote

import pytest
import yaml

from sample_policies import PATIENTS
from shoal.errors import InputError
from shoal.policy.policy import Policy
from shoal.web.edits import EDITS, edited, said_of
from web.visitor import number_of

POLICY = yaml.safe_load(PATIENTS)
COLUMNS = list(POLICY["attributes"])


def after(kind, **form):
    fields = {
        name: value if isinstance(value, list) else [str(value)] for name, value in form.items()
    }
    content, sentence = edited(kind, fields, POLICY, COLUMNS)
    Policy.from_dict(content)
    return content, sentence


def number(name):
    return COLUMNS.index(name) + 1


def test_a_role_keeps_how_values_are_made_coarser_and_answers_the_question():
    policy = {**POLICY, "attributes": {**POLICY["attributes"]}}
    policy["attributes"]["age"] = {**POLICY["attributes"]["age"], "ask": "really?"}
    content, sentence = edited("role", {"column": ["3"], "role": ["quasi"]}, policy, COLUMNS)
    assert content["attributes"]["age"] == POLICY["attributes"]["age"]
    assert sentence == "age: others could know it, as proposed"


def test_a_column_that_is_no_longer_private_takes_its_promise_with_it():
    content, sentence = after("role", column=number("disease"), role="plain")
    assert [promise["model"] for promise in content["promises"]] == ["k-anonymity"]
    assert content["attributes"]["disease"] == {**POLICY["attributes"]["disease"], "role": "plain"}
    assert sentence == "disease: private → harmless"


def test_a_column_that_was_left_out_comes_back_with_its_type():
    policy, column = {**POLICY, "attributes": {**POLICY["attributes"]}}, [str(number("charge"))]
    policy["attributes"]["charge"] = {"role": "quasi", "type": "number", "round": 50}
    out, _ = edited("role", {"column": column, "role": ["drop"]}, policy, COLUMNS)
    Policy.from_dict(out)
    private, _ = edited("role", {"column": column, "role": ["sensitive"]}, out, COLUMNS)
    assert private["attributes"]["charge"] == {"role": "sensitive", "type": "number"}


def test_there_is_one_person_column_at_most():
    content, _ = after("person", person=number("name"))
    assert content["attributes"]["name"] == {"role": "subject"}
    assert content["attributes"]["patient"] == {"role": "identifier"}
    content, sentence = after("person", person="rows")
    assert content["attributes"]["patient"] == {"role": "identifier"}
    assert sentence == "every row is its own person"


def test_several_columns_are_the_person_until_another_answer():
    pair = [number("name"), number("patient")]
    several, sentence = after("person", person="-".join(map(str, pair)))
    assert several["subject"] == ["name", "patient"]
    assert sentence == "name + patient: the person"
    assert several["attributes"]["patient"] == {"role": "identifier"}
    for kind, form in (("k", {"k": ["3"]}), ("role", {"column": ["3"], "role": ["drop"]})):
        kept, _ = edited(kind, form, several, COLUMNS)
        assert kept["subject"] == several["subject"]
        Policy.from_dict(kept)
    for other in ("rows", str(pair[0])):
        content, _ = edited("person", {"person": [other]}, several, COLUMNS)
        assert "subject" not in content
        Policy.from_dict(content)
    taken, _ = edited("role", {"column": [str(pair[0])], "role": ["quasi"]}, several, COLUMNS)
    with pytest.raises(InputError, match="subject: attribute 'name' has the role 'quasi'"):
        Policy.from_dict(taken)
    with pytest.raises(InputError, match="no such column"):
        edited("person", {"person": ["1-"]}, POLICY, COLUMNS)


@pytest.mark.parametrize("person", ["rows", "2"])
def test_whoever_says_who_is_one_person_answers_the_question_wherever_it_stands(person):
    asked = {"ask": {"question": "person", "candidates": [["age", "sex"], "patient"]}}
    attributes = {**POLICY["attributes"], "age": {**POLICY["attributes"]["age"], **asked}}
    policy = {**POLICY, "attributes": attributes}
    content, _ = edited("person", {"person": [person]}, policy, COLUMNS)
    assert content["attributes"]["age"] == POLICY["attributes"]["age"]
    assert not Policy.from_dict(content).open_questions()


def test_several_columns_are_set_at_once():
    content, sentence = after(
        "roles", column=[str(number("zip")), str(number("ward"))], role="drop"
    )
    assert {content["attributes"][name]["role"] for name in ("zip", "ward")} == {"drop"}
    assert sentence == "2 columns: left out"


def test_k_changes_every_promise_that_has_one():
    content, sentence = after("k", k=25)
    assert content["promises"][0]["k"] == 25
    assert sentence == "k: 10 → 25"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("l-diversity", "charge: at least 2 different"),
        ("t-closeness", "charge: at most 0.3 from the whole table"),
        ("entropy", "charge: at least 2 (entropy)"),
        ("beta-likeness", "beta-likeness attributes ['charge'], beta 2.0"),
    ],
)
def test_a_promise_about_a_private_column_is_added_and_taken_back(model, said):
    content, sentence = after("promise", column=number("charge"), model=model)
    assert said_of(content["promises"][-1]) in (sentence, said)
    place = len(content["promises"]) - 1
    less, _ = edited("unpromise", {"index": [str(place)]}, content, COLUMNS)
    assert less["promises"] == POLICY["promises"]


def test_a_promise_is_changed_by_its_number():
    content, _ = after("promise", index=1, l=4)
    assert content["promises"][1]["l"] == 4


def test_the_last_promise_stays():
    policy = {**POLICY, "promises": POLICY["promises"][:1]}
    with pytest.raises(InputError, match="at least one"):
        edited("unpromise", {"index": ["0"]}, policy, COLUMNS)


def test_a_method_is_named_as_compare_names_it():
    content, sentence = after("method", method="full-domain:suppression=0.05", k=5)
    assert content["method"] == {"name": "full-domain", "suppression": 0.05}
    assert content["promises"][0]["k"] == 5
    assert sentence == "method: full-domain:suppression=0.05, k: 10 → 5"


WAYS = [
    ("none", {}, {}),
    ("ranges", {"low": "0", "high": "120"}, {"type": "number", "domain": [0, 120]}),
    ("prefix", {"length": "5"}, {"hierarchy": {"prefix": 5}}),
    ("order", {"order": "low\nhigh\n"}, {"type": "ordinal", "order": ["low", "high"]}),
    ("dates", {}, {"hierarchy": {"dates": ["month", "year"]}}),
    ("bins", {"width": "10", "levels": "3"}, {"hierarchy": {"bins": {"width": 10, "levels": 3}}}),
]


@pytest.mark.parametrize(("how", "fields", "settings"), WAYS)
def test_how_a_column_is_made_coarser(how, fields, settings):
    content, _ = after("how", column=number("zip"), how=how, **fields)
    assert content["attributes"]["zip"] == {"role": "quasi", **settings}


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("role", {"column": "99", "role": "quasi"}),
        ("role", {"column": "1", "role": "boss"}),
        ("role", {"column": "²", "role": "quasi"}),
        ("roles", {"role": "quasi"}),
        ("k", {"k": "1"}),
        ("k", {"k": "ten"}),
        ("promise", {"index": "9", "l": "2"}),
        ("promise", {"column": "7", "model": "trust-me"}),
        ("promise", {"index": "1", "l": "nan"}),
        ("how", {"column": "3", "how": "magic"}),
        ("text", {"text": "version: [1"}),
        ("nothing", {}),
    ],
)
def test_what_no_control_sends_is_refused(kind, form):
    with pytest.raises(InputError):
        edited(kind, {name: [value] for name, value in form.items()}, POLICY, COLUMNS)


def test_no_edit_changes_the_policy_it_was_given():
    asked = {"sex": {"role": "quasi", "ask": {"question": "missing", "values": {"-": 2}}}}
    asking = {**POLICY, "attributes": POLICY["attributes"] | asked}
    before = yaml.safe_dump(asking)
    forms = {"column": ["4"], "role": ["drop"], "person": ["rows"], "k": ["3"], "index": ["1"],
             "how": ["none"], "method": ["mondrian"], "text": ["version: 1"], "l": ["5"],
             "file": ["x.csv"]}  # fmt: skip
    for kind in {*EDITS} - {"parent", "known"}:  # of several tables: test_several
        edited(kind, forms, asking, COLUMNS)
    assert yaml.safe_dump(asking) == before


@pytest.mark.parametrize("number", ["²", "9" * 5000])
def test_a_field_that_is_no_number_is_no_internal_error(opened, number):
    assert opened.post("/table", path="patients.csv", header=number).status < 500
    assert opened.post("/undo", to=number, base=opened.server.project.policy_sha).status == 404
    assert opened.edit("role", column=number, role="plain").status == 422
    assert opened.edit("role", column="0000000019", role="plain").status == 422
    assert opened.post("/rows", first=number).status == 200
    asked = quote(number)
    for place in ("stream", "ledger"):
        assert opened.get(f"/{place}/{asked}").status == 404
    assert opened.post(f"/hierarchies/{asked}", do="how").status == 404
    for place in ("columns?p=", "compare?m=mondrian&k=", "compare?at="):
        assert opened.get(f"/{place}{asked}").status == 200


def test_an_equal_change_on_an_older_policy_is_no_conflict(opened):
    base = opened.server.project.policy_sha
    place = f"/hierarchies/{number_of(opened.server, 'education')}"
    way = {"do": "how", "how": "prefix", "length": "2", "base": base}
    for _ in range(2):  # the second as another window sends it that has not seen the first
        assert opened.edit("k", k="7", base=base).status == 200
    assert opened.edit("k", k="8", base=base).status == 409
    way["base"] = opened.server.project.policy_sha
    for _ in range(2):
        assert opened.post(place, **way).status == 200
    assert opened.post(place, **{**way, "length": "3"}).status == 422


def test_a_column_that_becomes_private_is_promised_something_and_keeps_what_is_promised():
    content, said = after("role", column=number("age"), role="sensitive")
    assert content["promises"][-1] == {"model": "l-diversity", "l": 2, "attribute": "age"}
    assert said == "age: others could know it → private; age: at least 2 different"
    again, _ = edited(
        "role", {"column": [str(number("age"))], "role": ["sensitive"]}, content, COLUMNS
    )
    assert again["promises"] == content["promises"]


def test_numbers_that_others_could_know_are_rounded_to_the_step_beside_the_role():
    content, said = after("role", column=number("charge"), role="quasi", round="50")
    assert content["attributes"]["charge"] == {"role": "quasi", "type": "number", "round": 50}
    assert said == "charge: private → others could know it, in ranges rounded to 50"
