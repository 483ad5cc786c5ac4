"""Invented tables in which it is known who is one person, each made from a seed."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.data.person.decision import Answer, who_is_a_person
from shoal.data.table import Table

FIRST = "Anna Ben Carla David Eva Felix Gina Hans Ida Jan Kim Lea Max Nora Otto Paul".split()
LAST = "Meier Huber Keller Frei Graf Roth Kunz Vogel Wolf Berg Stein Lang Kurz Braun".split()


@dataclass(frozen=True)
class Bed:
    """A table and what is right: SURE, ASK or NONE, and the columns of the first candidate.

    others: columns that must be among the candidates, too.
    """

    make: Callable[[np.random.Generator], dict[str, Sequence[object]]]
    verdict: str
    first: tuple[str, ...] = ()
    others: tuple[tuple[str, ...], ...] = ()

    def frame(self, seed: int = 1, hidden: bool = False) -> pl.DataFrame:
        """As text. hidden: under names that say nothing."""
        columns = self.make(np.random.default_rng(seed))
        texts = {name: [str(cell) for cell in cells] for name, cells in columns.items()}
        frame = pl.DataFrame(texts)
        return frame.rename({n: f"x{i}" for i, n in enumerate(texts)}) if hidden else frame


def answer(columns: pl.DataFrame | dict[str, Sequence[object]]) -> Answer:
    """Who is one person in a table of these cells, as text."""
    return who_is_a_person(Table(pl.DataFrame(columns).cast(pl.String)))


def asked(columns: pl.DataFrame | dict[str, Sequence[object]]) -> list[tuple[str, ...]]:
    """The candidates of a question; none where nothing is asked."""
    found = answer(columns)
    assert found.verdict.name in ("ASK", "NONE")
    return [one.columns for one in found.candidates]


def without_accents(text: str) -> str:
    """ü as u: not what a speller would write, but what some files hold."""
    return "".join(
        sign
        for sign in unicodedata.normalize("NFKD", text)
        if sign.isprintable() and not unicodedata.combining(sign)
    )


def spread(rng: np.random.Generator, people: int, most: int) -> np.ndarray:
    """(records,) whose record it is, everybody with 1 to `most` of them."""
    return np.repeat(np.arange(people), rng.integers(1, most + 1, people))


def numbers(rng: np.random.Generator, count: int, digits: int = 8) -> np.ndarray:
    """Different numbers of one length."""
    drawn = rng.choice(9 * 10 ** min(digits - 1, 6), count, replace=False)
    return drawn + 10 ** (digits - 1)


def sexes(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.choice(["m", "f"], count)


def days(rng: np.random.Generator, count: int) -> list[str]:
    return [f"2023-{m:02}-{d:02}" for m, d in rng.integers(1, 28, (count, 2)) % [12, 28] + 1]


def visits(rng):
    who = spread(rng, 300, 4)
    case = np.unique(np.stack([who, rng.integers(0, 2, len(who))], 1), axis=0, return_inverse=True)
    return {
        "Fallnummer": 500_000 + case[1].ravel() * 3,
        "Patientennummer": numbers(rng, 300)[who],
        "Geburtsdatum": [f"{y}-05-11" for y in rng.integers(1930, 2015, 300)[who]],
        "Geschlecht": sexes(rng, 300)[who],
        "PLZ": rng.choice(["8001", "8400", "3000", "4051"], 300)[who],
        "Eintritt": days(rng, len(who)),
    }


def without(title, make):
    """What makes the same table without a column."""
    return lambda rng: {name: cells for name, cells in make(rng).items() if name != title}


def calls(rng):
    who = spread(rng, 150, 30)
    people = numbers(rng, 900, 11)
    return {
        "msisdn": people[:150][who],
        "imei": numbers(rng, 150, 15)[who],
        "imsi": numbers(rng, 150, 15)[who],
        "called": rng.choice(people, len(who)),
        "cell": rng.integers(0, 40, len(who)),
        "seconds": rng.integers(1, 900, len(who)),
    }


def trial(rng):
    who = np.repeat(np.arange(160), 6)
    site, number = np.divmod(who, 20)
    return {
        "USUBJID": [f"STUDY1-{s + 1:02}-{n + 1:03}" for s, n in zip(site, number, strict=True)],
        "SUBJID": [f"{n + 1:03}" for n in number],
        "SITEID": [f"{s + 1:02}" for s in site],
        "SEX": sexes(rng, 160)[who],
        "AGE": rng.integers(18, 80, 160)[who],
        "VISITNUM": np.tile(np.arange(1, 7), 160),
        "SYSBP": rng.integers(90, 160, len(who)),
    }


def households(rng, waves=1):
    house = spread(rng, 300, 5)
    number = np.concatenate([np.arange(1, n + 1) for n in np.bincount(house)])
    made = {
        "HHID": house + 1,
        "PNO": number,
        "region": rng.choice(list("ABCDE"), 300)[house],
        "sex": rng.choice(["1", "2"], len(house)),
        "age": rng.integers(0, 90, len(house)),
    }
    return {name: np.tile(cells, waves) for name, cells in made.items()}


def panel(rng):
    made = households(rng, 3)
    size = len(made["HHID"]) // 3
    made["person"] = made.pop("PNO")
    return {**made, "wave": np.repeat([1, 2, 3], size), "job": rng.choice(list("1234"), 3 * size)}


def beds(rng, outer="hospital", inner="ward", number="bed_number", waves=3):
    """Numbers that begin anew in every inner group, which begin anew in every outer one."""
    made = {
        outer: np.repeat([f"H{i}" for i in range(4)], 100),
        inner: np.tile(np.repeat([f"W{i}" for i in range(5)], 20), 4),
        number: np.tile(np.arange(1, 21), 20),
        "sex": sexes(rng, 400),
        "age": rng.integers(18, 95, 400),
        "zip": rng.choice(["8001", "3000", "4051"], 400),
    }
    made = {name: np.tile(cells, waves) for name, cells in made.items()}
    return {**made, "diagnosis": rng.choice(["flu", "hip", "lung"], 400 * waves)}


def hospital(rng):
    doctor = rng.integers(0, 40, 1500)
    return {
        "row": np.arange(1, 1501),
        "zip": rng.integers(1000, 9999, 1500),
        "sex": sexes(rng, 1500),
        "age": rng.integers(0, 99, 1500),
        "ward_id": [f"W{w:02}" for w in rng.integers(0, 12, 40)[doctor]],
        "doctor_id": [f"D{d:03}" for d in doctor],
        "batch_no": [f"LOT{b:04}" for b in rng.integers(0, 60, 1500)],
    }


def clerks(rng):
    return {
        "lab_no": np.arange(20_230_000, 20_230_800),
        "user_id": rng.choice([f"u{i:04}" for i in range(9)], 800),
        "sex": sexes(rng, 800),
        "age": rng.integers(0, 100, 800),
        "test": rng.choice(list("ABC"), 800),
    }


def few_users(rng):
    return {
        "user": rng.choice(["ann", "bob", "eve", "joe"], 800),
        "x": rng.random(800).round(3),
        "pose": rng.choice(["sit", "stand", "walk"], 800),
    }


def wearers(rng):
    who = rng.integers(0, 49, 4000)
    return {
        "X1": np.arange(4000) // 2 + 1,
        "age": rng.integers(18, 60, 49)[np.sort(who)],
        "gender": rng.integers(0, 2, 49)[np.sort(who)],
        "height": rng.integers(150, 195, 49)[np.sort(who)],
        "weight": rng.integers(45, 110, 49)[np.sort(who)],
        "steps": rng.random(4000).round(4),
    }


def shop(rng):
    who = np.repeat(np.arange(40), 25)
    home = rng.choice(["Bern", "Chur", "Thun"], 40)[who]
    return {
        "email": [f"p{i:02}@mail.example" for i in who],
        "day": days(rng, 1000),
        "shop": np.where(rng.random(1000) < 0.85, home, "Sion"),
        "amount": rng.integers(5, 200, 1000),
    }


def sign_ups(rng):
    names = [f"p{i}@mail.example" for i in range(490)]
    return {
        "email": [*names, *names[:10]],
        "sex": sexes(rng, 500),
        "age": rng.integers(18, 90, 500),
        "plan": rng.choice(list("ab"), 500),
    }


def births(rng, count):
    return np.datetime64("1940-01-01") + rng.integers(0, 23_000, count)


DRAWS = {
    "age": lambda rng, n: rng.integers(18, 80, n),
    "answer": lambda rng, n: rng.choice(list("abcde"), n),
    "birth_date": births,
    "birth_year": lambda rng, n: rng.integers(1930, 2006, n),
    "c1": lambda rng, n: numbers(rng, n, 7),
    "c2": sexes,
    "c3": lambda rng, n: rng.integers(1930, 2015, n),
    "c4": lambda rng, n: rng.choice(list("xyz"), n),
    "c5": lambda rng, n: rng.integers(0, 1000, n),
    "class": lambda rng, n: rng.choice(["3a", "3b", "4a", "4b"], n),
    "first_name": lambda rng, n: rng.choice(FIRST, n),
    "height": lambda rng, n: rng.normal(170, 9, n).round().astype(int),
    "last_name": lambda rng, n: rng.choice(LAST, n),
    "salary": lambda rng, n: rng.integers(30, 150, n) * 1000,
    "sex": sexes,
    "staff_no": lambda rng, n: numbers(rng, n, 5),
    "student": lambda rng, n: [f"{2000 + i}" for i in range(n)],
    "visit": days,
    "zip": lambda rng, n: rng.integers(8000, 8400, n),
    "Geburtstag": births,
    "MWH": lambda rng, n: rng.random(n).round(3),
    "Nachname": lambda rng, n: rng.choice(LAST, n),
    "OWNERSHIP": lambda rng, n: rng.choice(["public", "private"], n),
    "Ort": lambda rng, n: rng.choice(["Bern", "Thun", "Chur"], n),
    "Praxis": lambda rng, n: rng.choice(["Zahn", "Auge", "Haut"], n),
    "STATE": lambda rng, n: rng.choice(list("ABCDEFGH"), n),
    "SUBJID": lambda rng, n: [f"S{i:03}" for i in range(n)],
    "UTILITYID": lambda rng, n: rng.choice(30_000, n, replace=False),
    "Vorname": lambda rng, n: rng.choice(FIRST, n),
}


def drawn(people, most, own, of_record="", least=1):
    """What makes a table: everybody has `least` to `most` records, and what is their own in all."""

    def make(rng):
        who = np.repeat(np.arange(people), rng.integers(least, most + 1, people))
        made = {name: np.asarray(DRAWS[name](rng, people))[who] for name in own.split()}
        return made | {name: DRAWS[name](rng, len(who)) for name in of_record.split()}

    return make


def mothers_and_newborns(rng):
    is_born = rng.random(600) < 0.5
    age = np.where(is_born, 0, rng.integers(17, 46, 600))
    return {"age": age, "sex": np.where(is_born, sexes(rng, 600), "f"), "v": rng.random(600)}


def bodies(rng):
    """Men are taller, which nobody's return to the table is."""
    sex = sexes(rng, 3000)
    height = np.where(sex == "m", rng.normal(178, 7, 3000), rng.normal(165, 6, 3000))
    return {"sex": sex, "height": height.round().astype(int), "answer": DRAWS["answer"](rng, 3000)}


def old_towns(rng):
    town = rng.integers(0, 40, 4000)
    age = (20 + town * 1.5 + rng.normal(0, 4, 4000)).clip(0).astype(int)
    return {"age": age, "sex": sexes(rng, 4000), "zip": 8000 + town}


def unknown_days(rng, people=1500, most=1):
    """Of many the year of birth alone is known, and stands as its first day."""
    made = drawn(people, most, "birth_date sex", "answer")(rng)
    year = made["birth_date"].astype("M8[Y]").astype("M8[D]")
    is_known = made["birth_date"].astype(int) % 5 < 2
    return made | {"birth_date": np.where(is_known, made["birth_date"], year)}


BEDS = {
    "visits": Bed(visits, "SURE", ("Patientennummer",)),
    "visits of cases": Bed(without("Patientennummer", visits), "ASK", ("Fallnummer",)),
    "measured": Bed(drawn(40, 10, "SUBJID age sex zip", "c5", least=10), "SURE", ("SUBJID",)),
    "measured often": Bed(drawn(40, 60, "SUBJID age sex zip", "c5", least=60), "SURE", ("SUBJID",)),
    "calls": Bed(calls, "ASK", ("msisdn",), (("called",),)),
    "trial": Bed(trial, "SURE", ("USUBJID",)),
    "trial by site": Bed(without("USUBJID", trial), "ASK", ("SITEID", "SUBJID")),
    "households": Bed(households, "NONE"),
    "panel": Bed(panel, "ASK", ("HHID", "person")),
    "beds": Bed(beds, "ASK", ("hospital", "ward", "bed_number")),
    "pupils": Bed(
        lambda rng: beds(rng, "school", "class", "pupil_number"),
        "ASK",
        ("school", "class", "pupil_number"),
    ),
    "beds of one record": Bed(lambda rng: beds(rng, waves=1), "NONE"),
    "hospital": Bed(hospital, "NONE"),
    "clerks": Bed(clerks, "NONE"),
    "few users": Bed(few_users, "ASK", ("user",)),
    "wearers": Bed(wearers, "ASK", ("age", "gender", "height", "weight")),
    "shop": Bed(shop, "ASK", ("email",)),
    "sign-ups": Bed(sign_ups, "ASK", ("email",)),
    "named": Bed(
        drawn(250, 6, "Vorname Nachname Geburtstag Ort", "Praxis"),
        "ASK",
        ("Vorname", "Nachname", "Geburtstag"),
    ),
    "namesakes": Bed(drawn(900, 1, "first_name last_name birth_date sex", "salary"), "NONE"),
    "unnamed": Bed(drawn(300, 30, "c1 c2 c3 c4", "c5"), "ASK", ("c1",)),
    "companies": Bed(drawn(80, 22, "UTILITYID STATE OWNERSHIP", "MWH"), "ASK", ("UTILITYID",)),
    "survey": Bed(drawn(500, 1, "age sex answer"), "NONE"),
    "survey of years": Bed(drawn(500, 1, "birth_year sex answer"), "NONE"),
    "survey of many": Bed(drawn(20_000, 1, "age sex answer"), "NONE"),
    "staff": Bed(drawn(300, 1, "staff_no birth_date sex salary"), "NONE"),
    "staff without a number": Bed(drawn(120, 1, "age sex salary"), "NONE"),
    "ages and salaries": Bed(drawn(300, 1, "age salary"), "NONE"),
    "school marks": Bed(drawn(100, 1, "class sex answer"), "NONE"),
    "school births": Bed(drawn(100, 1, "class birth_date sex answer"), "NONE"),
    "voters": Bed(drawn(700, 1, "birth_year sex zip answer"), "NONE"),
    "visited once": Bed(drawn(800, 1, "birth_date sex visit"), "NONE"),
    "many births": Bed(drawn(40_000, 1, "birth_date sex visit"), "NONE"),
    "mothers and newborns": Bed(mothers_and_newborns, "NONE"),
    "bodies": Bed(bodies, "NONE"),
    "old towns": Bed(old_towns, "NONE"),
    "unknown days": Bed(unknown_days, "NONE"),
    "unknown days again": Bed(lambda rng: unknown_days(rng, 400, 4), "ASK", ("birth_date", "sex")),
    "births again": Bed(drawn(300, 4, "birth_date sex", "visit"), "ASK", ("birth_date", "sex")),
    "births alone again": Bed(drawn(300, 4, "birth_date", "visit"), "ASK", ("birth_date",)),
    "ages again": Bed(drawn(300, 5, "age sex", "visit"), "ASK", ("age", "sex")),
    "few ages again": Bed(drawn(30, 40, "age sex", "visit"), "ASK", ("age", "sex")),
    "years again": Bed(
        drawn(300, 5, "birth_year sex zip", "visit"), "ASK", ("birth_year", "sex", "zip")
    ),
    "many births again": Bed(
        drawn(20_000, 4, "birth_date sex", "visit"), "ASK", ("birth_date", "sex")
    ),
    "students": Bed(drawn(90, 9, "student", "answer"), "ASK", ("student",)),
    "wages": Bed(drawn(60, 24, "staff_no birth_year sex", "salary"), "SURE", ("staff_no",)),
}
