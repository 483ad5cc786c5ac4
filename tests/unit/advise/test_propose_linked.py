"""A policy proposed for several tables: links by evidence, and questions where there is none."""

import random
from pathlib import Path

import polars as pl
import pytest
import yaml

import linked_cases
from sample_policies import content_of
from shoal.advise.propose_linked import find_links, propose_linked
from shoal.connectors.linked_tables import ForeignKey, table_places
from shoal.data.person.decision import who_is_a_person
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.policy import Policy
from shoal.samples import sample


def links_of(world, declared=()):
    return find_links({name: Table(frame) for name, frame in world.items()}, declared)


@pytest.fixture
def world():
    return linked_cases.world(40)


def test_a_column_that_has_the_name_of_a_key_and_its_values_points_to_it(world):
    links = links_of(world)
    assert links.people == "people"
    assert (links.parent("visits").to_table, links.parent("visits").column) == ("people", "patient")
    assert links.parent("drugs").to_table == "visits"
    assert links.key("visits") == "visit"


def test_the_finest_table_is_the_parent_where_rows_point_to_several(world):
    owner = dict(world["visits"].select("visit", "patient").iter_rows())
    drugs = pl.concat([world["drugs"], world["drugs"].head(5)])
    drugs = drugs.with_columns(patient=pl.col("visit").replace_strict(owner))
    assert links_of({**world, "drugs": drugs}).parent("drugs").to_table == "visits"


def test_a_column_that_names_the_table_of_the_key_points_to_it(world):
    people = world["people"].rename({"patient": "id"})
    visits = world["visits"].rename({"patient": "patient_id"})
    links = links_of({"patients": people, "visits": visits, "drugs": world["drugs"]})
    assert links.people == "patients"
    assert links.parent("visits").column == "patient_id"


def test_numbers_that_every_table_gives_its_rows_prove_nothing(world):
    numbered = {
        name: frame.with_columns(id=pl.int_range(1, pl.len() + 1)) for name, frame in world.items()
    }
    assert all(
        link.column != "id"
        for some in links_of(numbered).links.values()
        for link in some
        if link.is_sure
    )


def test_without_a_common_name_somebody_is_asked(world):
    visits = world["visits"].rename({"patient": "who"})
    links = links_of({**world, "visits": visits})
    assert links.parent("visits") is None
    assert "to 'people' by 'who' (all values are keys there)" in links.question("visits")


def test_rows_that_find_none_are_asked_about(world):
    links = links_of({**world, "people": world["people"].head(38)})
    assert links.parent("visits") is None
    assert "find none there" in links.question("visits")


def test_what_the_database_declares_needs_no_name(world):
    visits = world["visits"].rename({"patient": "who"})
    declared = [ForeignKey("visits", "who", "people", "patient")]
    links = links_of({**world, "visits": visits}, declared)
    assert links.parent("visits").column == "who"
    assert "a foreign key of the database" in links.parent("visits").why


def test_it_is_an_error_where_no_table_can_be_that_of_people(world):
    alike = {"one": world["drugs"], "other": world["drugs"]}
    with pytest.raises(InputError, match="is not clear; name it 'people'"):
        links_of(alike)


def test_a_proposal_is_a_policy_that_fits_once_its_questions_are_answered(tmp_path, shoal):
    for name, frame in sample("clinic", 200, 1).items():
        frame.write_csv(tmp_path / f"{name}.csv")
    proposal = propose_linked(table_places(str(tmp_path)), 5)
    policy = Policy.from_dict(yaml.safe_load(proposal.text))
    assert policy.model == proposal.policy.model
    assert policy.model.attributes["patient"].role == "subject"
    assert policy.model.tables["drugs"].parent == {"visits": "visit"}
    assert "visit" not in policy.model.tables["visits"].attributes
    (tmp_path / "draft.yaml").write_text(proposal.text)
    checked = shoal("policy", "check", tmp_path / "draft.yaml", tmp_path)
    assert checked.status == (2 if proposal.questions else 0)
    assert all("open question" in line for line in checked.err.splitlines() if "sound" not in line)


def test_a_number_beside_a_private_column_is_asked_about(tmp_path):
    """Doses of drugs that nobody knows are hardly known; a number of people is as ever."""
    for name, frame in sample("clinic", 200, 1).items():
        frame.write_csv(tmp_path / f"{name}.csv")
    asked = propose_linked(table_places(str(tmp_path))).questions
    assert "beside drug, which nobody should learn" in asked["drugs.packs"]
    assert "age" not in asked


def test_the_table_of_people_is_called_so_in_the_policy_whatever_its_file_is(
    world, tmp_path, shoal
):
    (tmp_path / "data").mkdir()
    for name, frame in world.items():
        frame.write_csv(tmp_path / "data" / f"{name.replace('people', 'patients')}.csv")
    draft, data = tmp_path / "draft.yaml", tmp_path / "data"
    assert shoal("policy", "init", data, "--k", 2, "-o", draft).status == 0
    content = yaml.safe_load(draft.read_text())
    assert content["tables"]["visits"]["parent"] == {"people": "patient"}
    for table in (content, *content["tables"].values()):
        for settings in table["attributes"].values():
            settings.pop("ask", None)
    draft.write_text(yaml.safe_dump(content))
    assert shoal("policy", "check", draft, data).status == 0


def test_a_table_whose_parent_nobody_knows_keeps_publish_and_audit_waiting(world, tmp_path, shoal):
    world = {**world, "visits": world["visits"].rename({"patient": "who"})}
    for name, frame in world.items():
        frame.write_csv(tmp_path / f"{name}.csv")
    done = shoal("policy", "init", tmp_path, "-o", tmp_path / "draft.yaml", status=0)
    assert "visits: whose rows are these?" in done.err
    audited = shoal("audit", tmp_path, "-p", tmp_path / "draft.yaml", status=2)
    assert "table 'visits': has an open question" in audited.err


@pytest.fixture
def stays(folder) -> dict[str, dict]:
    """30 patients with 5 stays each, in a table of stays, and its policy; the working folder."""
    stay = range(150)
    about = {"patient": [f"P{i // 5}" for i in stay], "age": [20 + i // 5 for i in stay]}
    write_tables({**about, "sex": ["mf"[i // 5 % 2] for i in stay]}, [f"V{i}" for i in stay])
    quasi = {name: {"role": "quasi"} for name in ("age", "sex")}
    return {"stay": {"role": "subject"}, "patient": {"role": "identifier"}, **quasi}


def write_tables(about: dict[str, list], stays: list[str]) -> None:
    Path("data").mkdir()
    pl.DataFrame({"stay": stays, **about}).write_csv("data/people.csv")
    pl.DataFrame({"stay": stays, "drug": [i % 3 for i in range(len(stays))]}).write_csv(
        "data/drugs.csv"
    )


def said_of_people(attributes, shoal) -> list[str]:
    """What check, and a publication of k = 5, say at the beginning of a line."""
    drugs = {"parent": {"people": "stay"}, "rows": {"known": "count"}}
    content = content_of(attributes, 5)
    content |= {"tables": {"drugs": {**drugs, "attributes": {"drug": {"role": "plain"}}}}}
    Path("p.yaml").write_text(yaml.safe_dump(content))
    done = [
        shoal("policy", "check", "p.yaml", "data"),
        shoal("publish", "data", "-p", "p.yaml", "-o", "out", "-q"),
        shoal("verify", "out", "-p", "p.yaml", "--original", "data"),
    ]
    assert [one.status for one in done] == [0, 0, 0], done
    return [one.err for one in done[:2]]


def test_a_table_of_people_that_holds_several_rows_of_one_is_asked_about(stays, shoal):
    found = yaml.safe_load(propose_linked(table_places("data")).text)["attributes"]
    assert found["stay"]["ask"].startswith(
        "may several rows be one person's? its 150 rows hold only 30 different values of patient;"
    )
    warned = "table 'people': column 'patient': 150 records carry 30 different values"
    assert all(warned in said for said in said_of_people(stays, shoal))


def about_people(shown: list[str], times: int) -> dict[str, list]:
    """These columns of 200 people with several rows each, some of them namesakes."""
    drawn = random.Random(3)
    people = []
    for _ in range(200):
        sex, first, last = (
            drawn.choice("mf"),
            drawn.choice("ABCDEFGHIJKL"),
            drawn.choice("MNOPQRST"),
        )
        birth = f"{drawn.randint(1940, 2005)}-{drawn.randint(1, 12):02}-{drawn.randint(1, 28):02}"
        names = {"forename": f"{first}{sex}ena", "surname": f"{last}oeller{drawn.choice('stn')}"}
        names["name"] = " ".join(names.values())
        people.append({**names, "sex": sex, "birth": birth, "zip": drawn.randint(10100, 10140)})
    drawn.shuffle(people := people * times)
    return {name: [one[name] for one in people] for name in shown}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    "shown", ["name", "forename surname", "birth", "birth zip", "name birth zip", "tags"]
)
def test_people_who_stand_twice_under_several_keys_are_asked_about(folder, shoal, shown, times):
    """As where nothing numbers them; namesakes, and what many share, are nobody else."""
    about = about_people([*shown.removeprefix("tags").split(), "sex"], times)
    about |= {"tags": [f"{sex};{sex}{i // 3 % 2}" for i, sex in enumerate(about["sex"])]}
    write_tables(about, [f"V{i}" for i in range(len(about["sex"]))])
    assert times == 1 or who_is_a_person(Table(pl.DataFrame(about)), about).candidates
    attributes = {name: {"role": "identifier"} for name in about} | {"sex": {"role": "quasi"}}
    is_asked = times > 1 and shown != "tags"
    assert ("stay" in propose_linked(table_places("data")).questions) is is_asked
    said = said_of_people({"stay": {"role": "subject"}, **attributes}, shoal)
    assert ["k counts the rows of this table" in one for one in said] == [is_asked] * 2


def titled(folder: Path, table: str, world: dict[str, pl.DataFrame]) -> None:
    """Writes the tables, one of them below a title and a blank line."""
    folder.mkdir()
    for name, frame in world.items():
        above = "Clinic of St. Mary\n\n" if name == table else ""
        (folder / f"{name}.csv").write_text(above + frame.write_csv())


@pytest.mark.parametrize("table", ["people", "visits"])
def test_a_title_above_one_of_several_tables_is_proposed_published_and_verified(
    folder, shoal, table
):
    titled(Path("data"), table, linked_cases.world(60))
    found = propose_linked(table_places("data")).content
    lines = dict.fromkeys(("people", "visits", "drugs"), 1) | {table: 3}
    assert found["read"] == {"header": lines}
    content = linked_cases.policy() | {"read": found["read"]}
    Path("p.yaml").write_text(yaml.safe_dump(content))
    for command in (
        ("policy", "check", "p.yaml", "data"),
        ("publish", "data", "-p", "p.yaml", "-o", "out", "-q"),
        ("verify", "out", "-p", "p.yaml", "--original", "data"),
    ):
        done = shoal(*command)
        assert done.status == 0, done
    assert pl.read_csv("out/people.csv").height == 60


def test_what_is_said_of_lines_is_not_guessed_and_what_is_wrong_is_said_of_every_table(folder):
    titled(Path("data"), "visits", linked_cases.world(30))
    with pytest.raises(InputError) as refused:
        propose_linked(table_places("data"), read_as={"header": 9000})
    tables = ["table 'drugs'", "table 'people'", "table 'visits'"]
    assert [text.split(":")[0] for text in refused.value.said] == tables
    lines = {"people": 1, "visits": 3, "drugs": 1}
    found = propose_linked(table_places("data"), read_as={"header": lines})
    assert found.content["read"] == {"header": lines}


def test_lines_of_a_table_that_the_policy_does_not_have_are_a_finding():
    content = linked_cases.policy() | {"read": {"header": {"visits": 3, "vists": 3}}}
    with pytest.raises(InputError, match="there is no table 'vists'; did you mean 'visits'"):
        Policy.from_dict(content)
    alone = {"attributes": {"age": {"role": "quasi"}}, "promises": content["promises"]}
    with pytest.raises(InputError, match="there is no table 'visits'"):
        Policy.from_dict({"version": 1, **alone, "read": {"header": {"visits": 3}}})


def test_keys_of_people_that_differ_in_their_spelling_alone_are_warned_of(folder, shoal):
    names = [text.format(i) for i in range(12) for text in ("p{}", "P{}", "0p{}")]
    write_tables({"ward": ["A"] * 36}, names)
    attributes = {"stay": {"role": "subject"}, "ward": {"role": "quasi"}}
    warned = "attribute 'stay': 36 of its values are only 12"
    assert all(warned in said for said in said_of_people(attributes, shoal))
