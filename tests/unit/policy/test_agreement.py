"""An agreement is checked as a whole: everything that nobody else could know, or that would go
unprotected, is told.
"""

import copy

import polars as pl
import pytest
import yaml

from shoal.data.table import encode_text
from shoal.errors import InputError
from shoal.policy.agreement import Agreement
from shoal.samples import bank

BASE = yaml.safe_load(bank.parties({owner: f"{owner}.csv" for owner in bank.OWNERS}))
BASE["promises"] = [
    {"model": "k-anonymity", "attributes": ["age", "sex", "job"], "k": 10},
    {"model": "k-anonymity", "attributes": ["salary", "education", "district"], "k": 20},
]
TOLD = {"name": "party-tds-literal", "runner_up": "told"}


def agreement(change=lambda content: None):
    content = copy.deepcopy(BASE)
    change(content)
    return Agreement.from_dict(content)


def attributes(content, party=0):
    return content["parties"][party]["attributes"]


def judged(content):
    """The agreement with a veto on the office's district; what it says about that."""
    attributes(content, 2)["district"] = {"role": "plain"}
    content["promises"][1]["attributes"].remove("district")
    content["promises"].append({"model": "k-anonymity", "k": 5})
    content["sensitive"] = {"attribute": "district", "l": 2, "veto": "seen"}
    return content["sensitive"]


MISFITS = {
    "consent": lambda c: c["label"].update(shared=False),
    "scores_may_be_seen": lambda c: c.update(maximum={"name": "clear"}),
    "helper_is_trusted": lambda c: c.update(
        joining={"name": "keyed"}, helper={"name": "recipient"}
    ),
    "need a helper": lambda c: c.update(joining={"name": "keyed", "helper_is_trusted": True}),
    "a promise without 'attributes'": lambda c: c["promises"].append(
        {"model": "l-diversity", "attribute": "loan", "l": 2}
    ),
    "consent by 'veto: seen', or share the column": lambda c: judged(c).pop("veto"),
    "'seen'": lambda c: judged(c).update(veto="hidden"),
    "must be at least 2": lambda c: judged(c).update(l=1),
    "'loan' is the label, which all see": lambda c: judged(c).update(attribute="loan"),
    "is not an attribute of the role 'plain'": lambda c: judged(c).update(attribute="salary"),
    "is not an attribute of the role": lambda c: judged(c).update(attribute="nobody's"),
    "shared before the rounds": lambda c: (
        judged(c),
        c["promises"].append({"model": "l-diversity", "attribute": "district", "l": 2}),
    ),
    "agreement, sensitive: counts values in groups over all": lambda c: (
        judged(c) and c["promises"].pop()
    ),
    "'age': is in no QID": lambda c: c["promises"].pop(0),
    "needs a 'domain'": lambda c: attributes(c)["salary"].pop("domain"),
    "'grid'": lambda c: attributes(c)["salary"].update(domain=[0.5, 20]),
    "grid has": lambda c: attributes(c)["salary"].update(grid=1e-6),
    "needs a hierarchy": lambda c: attributes(c, 1)["sex"].pop("hierarchy"),
    "follow the data": lambda c: attributes(c, 1)["sex"].update(hierarchy={"prefix": 2}),
    "two owners": lambda c: attributes(c, 1).update(salary={"role": "drop"}),
    "the label": lambda c: attributes(c, 1).update(loan={"role": "plain"}),
    "the join column": lambda c: attributes(c, 1).update(customer={"role": "plain"}),
    "named twice": lambda c: c["parties"][1].update(name="bank"),
    "a name is": lambda c: c["parties"][1].update(name="Bank of Elsewhere"),
    "the commands of 'shoal party'": lambda c: c["parties"][1].update(name="init"),
    "commands of 'shoal party'": lambda c: c["parties"][1].update(name="run"),
    "only two owners": lambda c: c.update(helper={"name": "recipient"}),
    "must be one of": lambda c: c.update(method={"name": "party-tds", "score": "gain-per-loss"}),
    "consent by 'runner_up: told'": lambda c: c.update(method={"name": "party-tds-literal"}),
    "goes without 'sensitive'": lambda c: judged(c) and c.update(method=TOLD),
    "serves 'shoal publish' only": lambda c: c.update(method={"name": "mondrian"}),
    "not a known key": lambda c: c.update(owners=[]),
}


@pytest.mark.parametrize(("shown", "change"), MISFITS.items(), ids=MISFITS)
def test_what_does_not_fit_is_reported(change, shown):
    with pytest.raises(InputError) as refused:
        agreement(change)
    assert shown in str(refused.value)


def test_a_column_to_be_dropped_may_be_named_by_two_owners():
    dropped = {"remark": {"role": "drop"}}
    found = agreement(lambda c: [attributes(c, party).update(dropped) for party in (0, 1)])
    assert "remark" not in found.published


def test_all_findings_are_reported_at_once():
    def change(content):
        content["label"]["shared"] = False
        attributes(content)["salary"].pop("domain")
        content["helper"] = {"name": "recipient"}

    with pytest.raises(InputError) as refused:
        agreement(change)
    assert len(refused.value.findings) == 2


def test_quasi_identifiers_are_ordered_by_name_whoever_owns_them():
    moved = agreement(lambda c: attributes(c, 2).update(age=attributes(c, 1).pop("age")))
    assert moved.quasi == agreement().quasi == sorted(moved.quasi)


def test_texts_of_spans_lead_back_to_them():
    for domain in agreement().domains:
        last = domain.cells - 1
        for span in ((0, last), (0, 0), (last, last)):
            assert domain.span(domain.text(*span)) == span


def salary_of(found):
    return next(domain for domain in found.domains if domain.name == "salary")


@pytest.mark.parametrize(
    ("grid", "domain", "span", "text"),
    [(0.5, [0, 2], (1, 3), "[0.5, 1.5]"), (5, [0, 20], (1, 1), "5"),
     (None, [-3, 4], (0, 2), "[-3, -1]")],
)  # fmt: skip
def test_a_number_is_published_on_its_grid(grid, domain, span, text):
    more = {} if grid is None else {"grid": grid}
    found = agreement(lambda c: attributes(c)["salary"].update(domain=domain, **more))
    assert salary_of(found).text(*span) == text


@pytest.mark.parametrize(
    ("cells", "lost"),
    [(["1", "2.5", "3"], 1), (["-1", "4"], 1), (["x", "7"], 1), (["0", "200"], 0)],
)
def test_values_off_the_grid_or_domain_are_counted_never_shown(cells, lost):
    column = encode_text(pl.Series("salary", cells))
    _, found = salary_of(agreement()).cells_of(column, "bank")
    assert bool(found) == bool(lost)
    assert not found or f"{lost} records lie outside its domain and grid" in found[0]


def test_a_veto_is_a_promise_that_anybody_can_audit_and_part_of_the_hash():
    found = agreement(judged)
    assert found.judge == "office"
    assert found.diverse == {}
    assert found.policy.model.promises[-1]["model"] == "l-diversity"
    assert found.policy.model.attributes["district"].role == "sensitive"
    assert found.hash != agreement(lambda c: (judged(c), c.pop("sensitive"))).hash


def test_the_hash_is_the_same_for_the_same_agreement():
    assert agreement().hash == agreement().hash
    assert agreement(lambda c: c.update(seed=8)).hash != agreement().hash
    assert agreement(lambda c: c["parties"][0].update(table="x.csv")).hash == agreement().hash
    other = agreement(lambda c: attributes(c)["salary"].update(domain=[0, 300]))
    assert other.hash != agreement().hash


def test_a_misspelt_key_is_reported_in_terms_of_the_agreement():
    """No command prints the schema of an agreement, so none is named."""
    with pytest.raises(InputError) as found:
        agreement(lambda c: c.update(promise=c.pop("promises"), label="loan"))
    shown = [found.value.args[0], *found.value.findings]
    compare = "compare with the agreement that 'shoal sample bank' writes"
    assert sorted(shown) == [
        "agreement, label: must be a mapping of keys to values",
        f"agreement, promise: is not a known key; did you mean 'promises'? {compare}",
        f"agreement, promises: is missing; {compare}",
    ]
    with pytest.raises(InputError, match=r"salary\.grind: is not a known key; did you mean 'grid'"):
        agreement(lambda c: attributes(c)["salary"].update(grind=1))
