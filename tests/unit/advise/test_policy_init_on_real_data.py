"""What `policy init` proposes for real tables and the samples, against what is recorded."""

import os
import re
import time
from pathlib import Path

import polars as pl
import pytest

import shoal
from adult_cases import COLUMNS
from shoal.advise.propose import ProposedColumn
from shoal.samples import bank

pytestmark = pytest.mark.long

PAGE = Path(__file__).with_name("proposals.md")
RENEW = os.environ.get("SHOAL_RENEW_DOCS") == "1"

CENSUS = (
    "age;class of worker;detailed industry recode;detailed occupation recode;education;"
    "wage per hour;enroll in edu inst last wk;marital stat;major industry code;"
    "major occupation code;race;hispanic origin;sex;member of a labor union;"
    "reason for unemployment;full or part time employment stat;capital gains;capital losses;"
    "dividends from stocks;tax filer stat;region of previous residence;"
    "state of previous residence;detailed household and family stat;detailed household summary;"
    "instance weight;migration code-change in msa;migration code-change in reg;"
    "migration code-move within reg;live in this house 1 year ago;migration prev res in sunbelt;"
    "num persons worked for employer;family members under 18;country of birth father;"
    "country of birth mother;country of birth self;citizenship;own business or self employed;"
    "fill inc questionnaire for veteran's admin;veterans benefits;weeks worked in year;year;"
    "income class"
).split(";")


def adult(data: Path) -> pl.DataFrame:
    lines = (data / "adult" / "adult.data").read_text().splitlines()
    return pl.DataFrame([line.split(", ") for line in lines if line], schema=COLUMNS, orient="row")


def census(data: Path) -> pl.DataFrame:
    path = data / "census_income_kdd" / "census-income.data.gz"
    table = pl.read_csv(path, infer_schema=False, has_header=False, new_columns=CENSUS)
    return table.with_columns(pl.all().str.strip_chars())


def diabetes(data: Path) -> pl.DataFrame:
    return pl.read_csv(data / "diabetes130" / "diabetic_data.csv.gz", infer_schema=False)


def cup(data: Path) -> pl.DataFrame:
    return pl.read_csv(data / "cup" / "cup.csv.gz", infer_schema=False, separator=";")


def taxi(data: Path) -> pl.DataFrame:
    return pl.read_csv(data / "taxi" / "taxis.csv.gz", infer_schema=False)


TABLES = {
    "Adult": adult,
    "Census income (KDD)": census,
    "Diabetes, 130 US hospitals": diabetes,
    "KDD Cup 1998": cup,
    "New York taxis": taxi,
}
SAMPLES = ("patients", "purchases", "survey", "wearables")


def shown(column: ProposedColumn) -> str:
    """The role, the kind of the column and whether something is asked, as the page shows it."""
    kind = column.settings.get("type")
    hierarchy = column.settings.get("hierarchy")
    if isinstance(hierarchy, dict):
        kind = next(iter(hierarchy))
    words = [column.role, *([kind] if kind and column.role == "quasi" else [])]
    return ", ".join(words) + (" (ask)" if column.ask else "")


def table_of(section: str) -> dict[str, tuple[str, str]]:
    """By column, what the page says is proposed and what is right."""
    page = PAGE.read_text()
    body = page.partition(f"\n### {section}\n")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", body, re.MULTILINE)[1:]
    return {
        name.strip("`"): (proposed, right)
        for names, proposed, right in rows
        for name in names.split(", ")
    }


def renewed(section: str, proposed: dict[str, str]) -> None:
    """Puts today's proposals in the place of those shown; one row for all that are alike."""
    right = {name: right for name, (_, right) in table_of(section).items()}
    groups: dict[tuple[str, str], list[str]] = {}
    for name, role in proposed.items():
        groups.setdefault((role, right.get(name, "?")), []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {a} | {b} |" for (a, b), names in groups.items()]
    made = "\n".join(["| columns | proposed | right |", "|---|---|---|", *rows])
    page = PAGE.read_text()
    before, heading, rest = page.partition(f"\n### {section}\n")
    old, following, after = rest.partition("\n### ")
    intro = old.partition("\n| columns")[0]
    intro = f"{intro.strip()}\n\n" if intro.strip() else ""
    PAGE.write_text(f"{before}{heading}\n{intro}{made}\n{following}{after}")


def compare_with_page(section: str, proposal: shoal.Proposal) -> None:
    proposed = {column.name: shown(column) for column in proposal.columns}
    if RENEW:
        renewed(section, proposed)
    page = table_of(section)
    assert {name: role for name, (role, _) in page.items()} == proposed
    unsafe = [
        name
        for name, (role, right) in page.items()
        if right in ("identifier", "subject", "quasi", "time")
        and (role.startswith("plain") or role == "sensitive")
    ]
    assert unsafe == []


@pytest.mark.parametrize("section", TABLES)
def test_real_tables_get_the_roles_that_the_page_shows(section, data_folder):
    compare_with_page(section, shoal.propose_policy(TABLES[section](data_folder)))


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_get_the_roles_that_the_page_shows(name):
    frame = shoal.sample(name, n=1000, seed=7)
    compare_with_page(f"The sample `{name}`", shoal.propose_policy(frame))


def test_the_sample_of_several_owners_gets_the_roles_that_the_page_shows():
    compare_with_page("The sample `bank`", shoal.propose_policy(bank.generate(1000, 7)))


def test_adult_takes_a_moment(data_folder):
    frame = adult(data_folder)
    shoal.propose_policy(frame.head(100))
    began = time.process_time()
    shoal.propose_policy(frame, explain=True)
    assert time.process_time() - began < 2  # about 0.3 s
