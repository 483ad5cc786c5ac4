"""`ask`: nothing is published while somebody still has to decide about a column."""

import pytest
import yaml

import shoal as library

SAYS = "attribute 'charge': has an open question (ask); answer it and delete the key"


@pytest.fixture
def asking(workplace) -> dict:
    """The sample's policy in the folder of the sample, with a question about one column."""
    content = yaml.safe_load((workplace / "policy.yaml").read_text())
    content["attributes"]["charge"]["ask"] = "could others know it?"
    (workplace / "policy.yaml").write_text(yaml.safe_dump(content))
    return content


@pytest.mark.parametrize(
    "command",
    [
        ("publish", "patients.csv", "-p", "policy.yaml", "-o", "out.csv"),
        ("stream", "patients.csv", "-p", "policy.yaml", "-o", "out.csv"),
        ("republish", "patients.csv", "-p", "policy.yaml", "--ledger", "out.csv"),
        ("publish", "absent.csv", "-p", "policy.yaml", "-o", "out.csv"),
    ],
)
def test_what_publishes_refuses_in_one_line_and_writes_nothing(asking, workplace, shoal, command):
    done = shoal(*command)
    assert (done.status, done.out, done.err) == (2, "", f"shoal: {SAYS}\n")
    assert not [path for path in workplace.iterdir() if path.name.startswith("out.csv")]


def test_every_open_question_is_a_finding_in_python_too(asking, sample_table, tmp_path):
    asking["attributes"]["disease"]["ask"] = "and this one?"
    with pytest.raises(library.InputError) as refused:
        library.publish(sample_table, asking)
    assert {*refused.value.said} == {SAYS, SAYS.replace("charge", "disease")}
    with pytest.raises(library.InputError, match="open question"):
        library.stream(asking)
    with pytest.raises(library.InputError, match="open question"):
        library.republish(sample_table, asking, tmp_path / "ledger")


def test_check_lists_it_beside_everything_else(asking, workplace, shoal):
    done = shoal("policy", "check", "policy.yaml", "patients.csv")
    assert (done.status, done.err) == (2, f"shoal: {SAYS}\n")
    asking["attributes"]["ward"] = {"role": "plain", "hierarchy": "absent.csv"}
    (workplace / "policy.yaml").write_text(yaml.safe_dump(asking))
    done = shoal("policy", "check", "policy.yaml", "patients.csv")
    assert done.err.count("\n") == 2


def test_compare_warns_and_goes_on(asking, shoal, sample_table):
    few = ("--methods", "mondrian", "--ks", "5", "-q")
    done = shoal("compare", "patients.csv", "-p", "policy.yaml", *few)
    assert (done.status, done.err) == (0, f"shoal: {SAYS}\n")
    with pytest.warns(library.ReleaseWarning, match="open question") as caught:
        library.compare(sample_table, asking, ["mondrian"], [5])
    assert [one.message.code for one in caught] == ["open-question"]


def test_an_audit_warns_and_measures(asking, sample_table, sample_policy):
    released = library.publish(sample_table, sample_policy).data
    certificate = library.audit(released, asking, sample_table)
    assert certificate.holds
    assert {"code": "open-question", "severity": "open", "text": SAYS} in certificate["warnings"]


def test_an_agreement_with_a_question_is_refused(folder, shoal):
    assert shoal("sample", "bank", "-n", "40", "--seed", "3", "-o", ".", "-q").status == 0
    content = yaml.safe_load((folder / "bank.parties.yaml").read_text())
    content["parties"][0]["attributes"]["salary"]["ask"] = "does the office know it?"
    (folder / "bank.parties.yaml").write_text(yaml.safe_dump(content))
    done = shoal("fuse", "bank.parties.yaml", "-o", "fused.csv")
    assert (done.status, done.err) == (2, f"shoal: {SAYS.replace('charge', 'salary')}\n")
