"""Whom k counts in tables as they occur: small generated ones, each of a kind, with neighbours
about which nobody must be asked.
"""

from itertools import product

import numpy as np
import polars as pl
import pytest

import shoal
from person_bed import FIRST, LAST, answer, asked
from shoal.advise.propose import propose_policy
from shoal.data.column_words import name_of
from shoal.data.table import Table
from thorough import every

PEOPLE = 300
NAMES = [f"{first} {last}" for first in FIRST for last in LAST][:PEOPLE]
DIAGNOSES = ["J45", "I10", "E11", "M54", "F32", "K21"]


def visits(title: str, cells: list[str], each: int = 4, **own: list[object]) -> pl.DataFrame:
    """Visits in any order under one column for those whom the cells name.

    own: what else is everybody's own, one cell for each of them.
    """
    rng = np.random.default_rng(41)
    who = rng.permutation(np.repeat(np.arange(len(cells)), rng.integers(1, 2 * each, len(cells))))
    frame = {name: [str(of[i]) for i in who] for name, of in {title: cells, **own}.items()}
    frame["date"] = (np.datetime64("2022-01-01") + rng.integers(0, 700, len(who))).astype(str)
    frame["clinic"] = [f"C{i}" for i in rng.integers(0, 9, len(who))]
    frame["diagnosis"] = rng.choice(DIAGNOSES, len(who))
    frame["cost"] = [str(cost) for cost in rng.integers(10, 300, len(who))]
    return pl.DataFrame(frame)


# Titles, parted by `|`, with cells of people who are asked about, and with such as are nobody's.

LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"


def numbers(first: int = 1, step: int = 1, count: int = PEOPLE, form: str = "{}") -> list[str]:
    return [form.format(first + step * i) for i in range(count)]


def phrases(firsts: str, seconds: str, form: str = "{} {}") -> list[str]:
    return [form.format(one, other) for one in firsts.split() for other in seconds.split()]


COUNTED = "No. Paciente|No Patient|No. cliente|n_client|Num. paciente|num pac|nclient|No. Empleado"
COUNTED += "|num_client|No. Expediente|No dossier|N° dossier|Chart #"
FORMS = "Patient*in|Patient:in|Patient/in|Patient/-in|Patient_in|Patient(in)|PatientIn"
FORMS += "|Patient*innen|Patientin|Teilnehmer:in|Schüler/-in|Mitarbeiter_in|Kundin|Kund*in"
FORMS += "|paciente/a|alumno(a)|élève(e)|usuario/a|Patient*in-Nr."
FILES = "No Rekam Medis|No. de historia clínica|No. de seguro social|No. KTP|No BPJS|No. Pegawai"
FILES += "|No Matrik|No AVS|No. matricule|N. cartella|N. matricola|Nº historia clínica|Num. carnet"
FILES += "|num_etu"
FULL = "Last, First|Apellidos y nombre|Cognome e nome|Nom et prénom|Name, Vorname|Imię i nazwisko"
FULL += "|Jméno a příjmení|Nombre completo|nomecompleto|nome|Nombre|naam|Navn|Namn|Nimi|Nama"
FULL += "|Ad Soyad|Surname|voornaam en achternaam|deputado|Runner|party|who|x7"
CARDS = "No. Patient|Num Cliente|No. Socio|NUM_PATIENT|No. Pasien|No. Tarjeta|No. Cuenta"
CARDS += "|Num. polizza|N. tessera|No. Kartu|No. Empleado"
SCRIPTS = {
    "ПІБ": "Шевченко Коваленко Бондаренко Ткаченко|Олена Тарас Юрій Оксана Марія Андрій",
    "Ονοματεπώνυμο": "Παπαδόπουλος Γεωργίου Νικολάου Ιωάννου|Γιώργος Μαρία Ελένη Νίκος Άννα Σοφία",
    "שם מלא": "כהן לוי מזרחי פרץ|דוד שרה יוסף מרים משה רחל",
    "الاسم الكامل": "المصري الحسن العلي الخطيب|محمد أحمد علي حسن فاطمة خالد",
    "रोगी": "शर्मा वर्मा गुप्ता सिंह|राम सीता अमित प्रिया राहुल अनिता",
    "Họ và tên": "Nguyễn Trần Lê Phạm|An_Thị Bình_Thị Châu_Thị Dung_Văn Đức_Thu Hà_Lan",
}
TOKEN_FORMS = ["{0:08x}-91ab-4cde-8f01-{1:012x}", "{0:08x}9f{1:022x}", "Zx{0:09}-Q_{1:09}w"]
REACHED = {
    "Cell|Line|Trial|Cep telefonu|Portable": ["(555) 2{2:02}-4567"],
    "Celular|GSM|Cell|Natel privat": ["55 50 77 {2:02} {3:02}", "044 7{2:02} 8{3:02}0"],
    "Cell": ["2{2:09}"],
    "profile_url|LinkedIn URL|user link|twitter_handle": ["https://x.example/u{2}"],
    "browser_id|device_id|session token|cookie|page": TOKEN_FORMS,
}
MOTHERS = "Your personal code (first two letters of mother's name + birthday)"
CENTRES = [(centre, nr) for centre in range(1, 13) for nr in range(1, 16)]
PLATES = [f"{'ABCDEFG'[i % 7]}{'HJKLM'[i % 5]}{i % 90 + 10}" for i in range(140)]
STUDENTS = [f"2023{1 + i % 12:02}{1 + i % 28:02}" for i in range(84)]
BADGES = numbers(10_000, 7, 60)
LIKE_MEASURES = {
    "phone": "(212) 555-{:04}", "Telefon": "+41 (0)79 555 {:04}", "from": "Ann Lee <lee{}@x.org>",
    "visitor": "1033{0}.1368477{0:03}", "device": "-3074457345618{:06}",
    "uid": "-3074457345618{:06}", "imei": "3.5432{}E+14", "card_no": "123,{:03}",
    "patient": "{},25", "customer": "[{}]", "participant": "14-3-{}",
}  # fmt: skip
ASKED = [
    *(
        (FULL, [form.format(*name.split()) for name in NAMES[:200]])
        for form in ("{0} {1}", "{1}, {0}", "{0} {1} {1}", "{0} de la {1} {1}")
    ),
    *((COUNTED, numbers(first, 3)) for first in (1, 20_000)),
    *((FILES, numbers(first, 3, 100)) for first in (1, 10_000, 72_857)),
    (FORMS, numbers(200)),
    ("UR|x7", numbers(20_000, 3)),
    ("White", phrases(" ".join(LETTERS), " ".join(LETTERS), "{}{}")[:PEOPLE]),
    ("old_patient|patient (anonymised)|Anon Patient|個人ID", numbers(20_000, 3, 200)),
    ("telecom.value|email_type", numbers(0, 1, 200, "a{}@mail.example")),
    *(
        ("Client|Aktenzeichen|Expediente|ID|pid|Subject", numbers(1000, 37, 200, form))
        for form in ("{}/19", "{}/9", "{}-19", "2019/{}")  # no dates
    ),
    *((CARDS, numbers(count=count)) for count in (15, 195)),
    *(
        (title, [name.replace("_", " ") for name in phrases(*names.split("|"))])
        for title, names in SCRIPTS.items()
    ),
    *(
        ("Worker|Caller|Employee|Mitarbeiter|Client", [*map(form.format, NAMES[:60], BADGES)])
        for form in ("{0} ({1})", "{0} [{1}]", "{0} <{1}>")
    ),
    *(
        (titles, [form.format(7919 * n, 104729 * n, n, 7 * n % 90 + 10) for n in range(10, 70)])
        for titles, forms in REACHED.items()
        for form in forms
    ),
    (f"{MOTHERS}|Geburtsdatum-Code", PLATES),
    *(("x7", [form.format(*one) for one in CENTRES]) for form in ("{}:{:02}", "{}.{}")),
    ("学号|学籍番号|Legajo no", STUDENTS),
    ("VRM|reg|x8", [f"{one} {one[::-1]}X" for one in PLATES]),
    ("Matrícula|targa", [f"ZH {7919 * i + 1000}" for i in range(120)]),
    ("PHN|CHI", [f"{7919 * i % 10**7:07}-{i % 10}" for i in range(120)]),
    *((title, numbers(10, 1, 80, form)) for title, form in LIKE_MEASURES.items()),
    ("Kind", numbers(100, 1, 60, "K{:03}")),
    ("author", numbers(100, 1, 60, "Ann Lee{}")),
    ("Case File No|No. de control", numbers(count=60)),
]
WORDS = {
    "product": phrases("Blue Red Green Large Small", "Shirt Skirt Jacket Hat Scarf Sock"),
    "x7": phrases("Acute Chronic Mild Severe Late", "Asthma Bronchitis Gout Angina Rash"),
    "x8": phrases("Острый Тяжёлый Лёгкий Поздний", "бронхит грипп отит гастрит ринит цистит"),
    "nome_produto": phrases("Queijo Vinho Doce Sumo Carne", "Branco Tinto Fresco Magro"),
    "nome do município": phrases("Santa Rio Porto Campo", "Maria Claro Velho Rosa"),
    "school_name": phrases(" ".join(FIRST), "School College Academy"),
    "street": phrases(" ".join(FIRST), "Street Road Lane"),
    "nimi_tuote": phrases("Musta Iso Uusi Vanha Punainen", "Paita Takki Hattu Kenka"),
}
MONTHS = ["{}-{:02}", "{}/{}", "{}-{:02} ", "{}-{:02}-01", "{}-{:02}T00"]
NOBODY = [
    *((title, cells, 20) for title, cells in WORDS.items()),
    ("num_client|n_patient|no_of_children|# of children", numbers(0, 1, 12), 60),
    ("num_cliente|n_card|No. Cuenta", numbers(0, 1, 12), 60),
    *(("balance", numbers(-150 * step, step), 4) for step in (1, 10**5)),
    ("n_chart_events|num_nhs_visits|no_dossiers|number_of_passports", numbers(0, 1, 100), 4),
    ("n_seguros", numbers(0, 1, 100), 4),
    ("sentiment_label|is_guest_login|product_barcode|ward", numbers(1, 1, 200), 4),
    *(("Client", [m.format(2000 + i // 12, i % 12 + 1) for i in range(120)], 4) for m in MONTHS),
    ("score|balance|customer_balance|x7", ["-1", "-2", *numbers(0, 1, 100)], 4),
    ("code_insee|CODE_INSEE|codeinsee|Code INSEE", numbers(1000, 7, 60, "{:05}"), 7),
    ("group_id", ["0-9", "10-19", "20-29"], 100),
    ("race_code|Esstisch|cell_type|CEP|Cell", numbers(count=24), 20),
    ("product_id|article no|Region code|Stratum no|Store no", numbers(count=60), 6),
    ("x7", [f"{hour}:{minute:02}" for hour in range(7, 20) for minute in range(0, 60, 5)], 4),
    ("x7", [f"{'Ward Room Hall'.split()[i % 3]} {i}" for i in range(60)], 10),
    ("x7", [f"{i / 4:.2f}" for i in range(90)], 7),
    ("birthday", [f"{day}th of {m}" for day in range(4, 20) for m in ("May", "June", "July")], 12),
    ("date key", [f"2023{month:02}1{day}" for month in range(1, 13) for day in range(9)], 6),
]


@pytest.mark.parametrize(
    ("title", "cells"), [(title, cells) for some, cells in ASKED for title in some.split("|")]
)
def test_people_are_asked_about_under_such_titles(title, cells):
    assert asked(visits(title, cells)) == [(title,)]


@pytest.mark.parametrize("form", ["{}.{:02}", "{:02}:{:02}"])
def test_an_id_of_which_a_part_repeats_is_asked_about_once_more(form):
    assert asked(visits("ID", [form.format(*one) for one in CENTRES])) == [("ID",)] * 2


@pytest.mark.parametrize(
    ("title", "cells", "each"),
    [(title, *row) for some, *row in NOBODY for title in some.split("|")],
)
def test_counts_measures_places_and_phrases_are_not_asked_about(title, cells, each):
    assert asked(visits(title, cells, each)) == []


@pytest.mark.parametrize("title", ["nome", "Nombre", "naam", "Navn", "Nimi", "Nama", "Surname"])
def test_a_name_alone_that_is_not_full_is_not_asked_about(title):
    assert asked(visits(title, FIRST, 20)) == []
    frame = visits(title, NAMES).unique(title)
    assert asked(frame) == []


@pytest.mark.parametrize("titles", [("nombre", "apellidos"), ("voornaam", "achternaam")])
def test_first_and_last_names_number_people_together_though_each_is_of_two_words(titles):
    first, last = titles
    firsts = [f"{one} {two}" for one in FIRST for two in FIRST[:9]][:120]
    lasts = [f"{one} {two}" for one in LAST for two in LAST[:9]][:120]
    frame = visits(first, firsts, **{last: lasts[::-1]})
    assert asked(frame) == [(first, last)]


@pytest.mark.parametrize("name", ["first_name", "nom", "last_visit_first_visit", "nombre_total"])
def test_a_first_or_a_last_name_is_no_full_name(name):
    assert name_of(name).kind in ("first", "name", "thing", "event", "")
    assert name == "nom" or name_of(name).kind != "name"


def trials(title: str, form: str, people: int = 40, each: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(41)
    who, trial = np.divmod(np.arange(people * each), each)
    frame = {title: [form.format(i + 1) for i in who]}
    frame |= {"Block": trial // 20 + 1, "Trial": trial + 1, "Cond": rng.choice([*"ABC"], len(who))}
    frame["RT"] = rng.normal(600, 90, len(who)).astype(int)
    frame["Correct"] = rng.integers(0, 2, len(who))
    return pl.DataFrame(frame).cast(pl.String)


@pytest.mark.parametrize("title", ["code", "no", "group_id", "type_id", "diag_code", "index", "x7"])
def test_few_values_that_are_not_named_for_somebody_are_not_asked_about(title):
    assert asked(trials(title, "{}", 8)) == []


TRIALS = "sub sub-{:02}|Sujet {}|sujeto S{:02}|soggetto {}|VP {}|Vpn {}|Versuchsperson {}|VPNr {}"
TRIALS += "|proefpersoon {}|ppn {}|RECORDING_SESSION_LABEL s{:02}"


FEW = "ID id Id. identifiant participantID Probandencode".split()


@pytest.mark.parametrize(
    ("title", "form", "people"),
    [*((*row.split(), 40) for row in TRIALS.split("|")), *product(FEW, ["{}"], [4, 8, 15])],
)
def test_those_who_take_part_in_trials_are_asked_about(title, form, people):
    assert asked(trials(title, form, people)) == [(title,)]


@pytest.mark.parametrize("title", "sub_category label sentiment_label subtotal subtype".split())
def test_what_is_called_nearly_like_them_is_not_asked_about(title):
    frame = trials(title, "{}")
    # else each would be seen once in every trial
    assert asked(frame.with_columns(frame[title].shuffle(41))) == []


@pytest.mark.parametrize("title", f"{COUNTED}|num_patient|No. Kunde|n_secu|total_x".split("|"))
def test_numbers_of_people_that_are_named_as_counts_are_found_beside_what_is_theirs(title):
    rng = np.random.default_rng(41)
    own = {"sex": rng.choice([*"FM"], PEOPLE), "birth_year": rng.integers(1940, 2005, PEOPLE)}
    assert asked(visits(title, numbers(200), **own))[0] == (title,)


COUNTS = "num_patients num_visits n_drugs number_of_clients #visits total_patient nombre_patient"
COUNTS += " nb_client num_medications n_customers"


@pytest.mark.parametrize("title", ["Anzahl Kunden", *COUNTS.split()])
def test_counts_of_many_are_not_asked_about(title):
    rng = np.random.default_rng(41)
    counts = rng.geometric(0.02, 900).astype(str)
    wards = rng.choice([*"ABC"], 900)
    assert asked({title: counts, "ward": wards, "day": np.arange(900) % 30}) == []


@pytest.mark.parametrize(
    "title", ["check_in", "time_in", "Login", "Insulin", "w/o", "km/h", "date/a"]
)
def test_what_ends_as_such_forms_do_is_nobody(title):
    assert name_of(title).kind not in ("person", "staff")


TOLD = (
    "geboortedatum geslacht postcode|data_nascimento sexo cep|"
    "DT_NASC CS_SEXO ID_MUNICIP|födelsedatum kön postnummer|"
    "fødselsdato kjønn postnr|foedselsdato koen postnr|"
    "tanggal_lahir jenis_kelamin kode_pos|data_urodzenia płeć kod_pocztowy|"
    "datum_narození pohlaví PSČ|dátum_narodenia pohlavie PSČ|"
    "data_di_nascita sesso CAP|fecha_nac sexo cp|"
    "F._Nac. Sexo Municipio|date_naiss sexe code_postal|"
    "DDN SEXE CP|D.O.B. M/F Town|"
    "D.O.B Gender PostCode|született nem irsz|"
    "születési_idő nem irányítószám|data_nasterii sex cod_postal|"
    "doğum_tarihi cinsiyet posta_kodu|syntymäaika sukupuoli postinumero|"
    "生年月日 性別 郵便番号|생년월일 성별 우편번호|"
    "出生日期 性别 邮编|дата_рождения пол индекс"
)


@pytest.mark.parametrize("titles", TOLD.split("|"))
def test_birth_and_sex_that_recur_are_asked_about_in_any_language_and_the_place_is_not(titles):
    rng = np.random.default_rng(41)
    birth, sex, place = (title.replace("_", " ") for title in titles.split())
    days = (np.datetime64("1935-01-01") + rng.integers(0, 25_000, 900)).astype(str)
    own = {sex: rng.choice([*"FM"], 900), place: rng.integers(1000, 6000, 900)}
    recurring = visits(birth, days, 2, **own)
    (found,) = asked(recurring)
    assert {birth, sex} <= {*found}
    assert asked(recurring.unique(birth)) == []


BIRTHS = (np.datetime64("1935-01-01") + np.arange(PEOPLE) * 83).astype(str)


@pytest.mark.parametrize("title", ["prontuario", "x7"])
@pytest.mark.parametrize("also", [{}, {"sexo": [*"FM"] * (PEOPLE // 2)}])
def test_a_number_of_people_whose_births_nearly_all_differ_is_asked_about(title, also):
    births = [*BIRTHS[:-20], *BIRTHS[:20]]
    own = {"data_nascimento": births, "zip": np.arange(PEOPLE) % 60 + 1000, **also}
    found = answer(visits(title, numbers(20_000, 3), **own))
    assert found.candidates[0].columns == (title,)


@pytest.mark.parametrize("title", ["x7", "price_group"])
def test_what_many_of_the_same_births_share_is_not_asked_about(title):
    rng = np.random.default_rng(41)
    frame = visits("zip", [str(1000 + i) for i in range(60)], 10)
    births = (np.datetime64("1935-01-01") + rng.integers(0, 25_000, frame.height)).astype(str)
    groups = pl.col("zip").cast(pl.Int64) % 7 + 300
    assert asked(frame.with_columns(groups.alias(title), birth_date=pl.Series(births))) == []


def hashes(count: int) -> list[str]:
    """As Spark's `hash` makes them: 32 bits with a sign."""
    return [str(one) for one in np.random.default_rng(41).integers(-(2**31), 2**31, count)]


TOKENS = {
    "hash": hashes(PEOPLE),
    "nric": [f"S{1_000_000 + 7919 * i}{LETTERS[i % 23]}" for i in range(PEOPLE)],
    "dni": [f"{10_000_000 + 7919 * i}{LETTERS[i % 23]}" for i in range(PEOPLE)],
    "ppsn": [f"{1_000_000 + 7919 * i}{LETTERS[i % 23]}A" for i in range(PEOPLE)],
    "hkid": [f"{LETTERS[i % 23]}{100_000 + 791 * i}({i % 10})" for i in range(PEOPLE)],
}


WORDS_FOR_PEOPLE = "patient_sk|customer_sk|user_idx|participant_barcode|subject_label|user_login"
WORDS_FOR_PEOPLE += "|player_tag|speaker|estudiante|klant|Käufer|uczestnik|SEQN|UHID|등록번호"
WORDS_FOR_PEOPLE += "|No. Peserta|num_hc|household_key|Haushalt|study_id|StudyID"
HASHED = """
    device_id imei imsi msisdn CALLING_NUM medallion account AccountNumber pupil resident
    nhs_number PESEL dni Versichertennummer Patientennummer Fallnummer PATID patnr SUBJID USUBJID
    respondent uid userid user_id hash pseudonym 患者番号 会员号 cookie session mac contract
    Kundennummer matricule code_patient IDPAZIENTE id_persona email_hash
"""
OF_PEOPLE = """
    codigo_paciente codice_paziente cod_assistito код_пациента ид_клиента 病人ID 病人号 환자번호
    회원번호 사번 学号 Teilnehmer Einwohner henkilotunnus رقم_المريض αριθμός_ασθενή κωδικός_πελάτη
    מספר_מטופל KVNR NISS tckn UPN MBI beneficiary pasient deelnemer PTID empno tc_kimlik reviewerID
    author_id enrollee policyholder IPP NSS wearer PAN
"""
CODES = [f"{n:08x}" for n in np.random.default_rng(1).integers(16**7, 16**8, 60)]
PARTED = "ID|Subject|Client|Kundennummer|Screening No."
SEEN = [
    *((title, CODES) for title in HASHED.split()),
    *((title, numbers(count=60)) for title in OF_PEOPLE.split()),
    *(
        (PARTED, [form.format(1 + i // 25, 1 + i % 25) for i in range(100)])
        for form in ("{}.2{:02}", "{}-{}")
    ),
    *(("id|x7|uid_hash|NRIC", cells) for cells in TOKENS.values()),
    ("NHI|HKID|nric|PPSN|NIK", [f"{'ABCDEF'[i % 6]}AB{1000 + i}" for i in range(PEOPLE)]),
    *((WORDS_FOR_PEOPLE, numbers(1, 1, 200, form)) for form in ("{}", "X{:04}")),
]


@pytest.mark.parametrize(
    ("title", "cells"), [(title, cells) for some, cells in SEEN for title in some.split("|")]
)
def test_numbers_of_people_under_such_titles_or_of_such_forms_are_seen(title, cells):
    assert [one.columns for one in answer(visits(title, cells)).candidates] == [(title,)]


@pytest.mark.parametrize("title", ["zip", "Postleitzahl", "cep"])
def test_a_postcode_that_nearly_numbers_people_is_not_asked_about_alone(title):
    own = {"sex": [*"FM"] * (PEOPLE // 2), "birth_year": 1935 + np.arange(PEOPLE) % 71}
    frame = visits(title, numbers(1000, 7), 2, **own)
    assert asked(frame) == [("birth_year", "sex", title)]


def keyed(title: str, form: str, **own: list[object]) -> pl.DataFrame:
    """Visits with a key each: the person's number with a counter, or with some of five years."""
    rng = np.random.default_rng(41)
    frame = visits("who", numbers(0, 1, PEOPLE), 3, **own).sort("who")
    who = frame["who"].cast(pl.Int64).to_list()
    nth = frame.select(nth=pl.int_range(1, pl.len() + 1).over("who"))["nth"].to_list()
    years = {person: rng.permutation(np.arange(2018, 2024)) for person in who}
    cells = [
        form.format(p=p, c=c, l="abcdef"[c - 1], w=f"t{'i' * c}", y=years[p][c - 1])
        for p, c in zip(who, nth, strict=True)
    ]
    return frame.with_columns(pl.Series(title, cells)).drop("who")


@pytest.mark.parametrize("title", ["patient_id", "Patientennummer", "pesel"])
@pytest.mark.parametrize("form", ["1{p:04}.{c}", "1{p:04} ({c})", "1{p:04}({c})"])
def test_a_point_and_brackets_part_the_number_of_a_person_from_a_counter(title, form):
    frame = keyed(title, form)
    assert asked(frame) == [(title,)]
    assert answer(frame).candidates[0].people == PEOPLE
    assert "." not in form or not asked(frame.rename({title: "weight_kg"}))


OWN = {"age": np.arange(PEOPLE) % 70 + 18, "sex": ["F", "M", "F"] * (PEOPLE // 3)}
KEYS = "P{p:03}{l}|P{p:03}-{l}|P{p:03}_{w}|{p} {w}|"
KEYS += "P{p:03}-{c}|P{p:03}_{c}|P{p:03}/{c:02}|P{p:03}.{c}|{p}-{c}|X-{p}-V{c}|{y}-P{p:03}|"
KEYS += "P{p:03}_{c}.png|sub-{p:03}_ses-{c:02}_T1w|TCGA-02-{p:04}-01C-0{c}D-0182-01|P{p:03} ({c})|"
KEYS += "P{p:03}_{y}0217|P{p:03}/{y}/03|{p:05}_img{c:04}|{p:04}-{y}-02-17|{p:05} visit {c}|"
KEYS += "S{p:03}R{c:02}.edf"


@pytest.mark.parametrize(
    ("title", "form", "own"),
    every(9, product(["id", "patient_id", "case_no", "Patient", "x7"], KEYS.split("|"), [{}, OWN])),
)
def test_keys_that_begin_or_end_with_the_number_of_a_person_are_asked_about(title, form, own):
    frame = keyed(title, form, **own)
    found = answer(frame)
    assert (found.verdict.name, len(found.candidates)) == ("ASK", 1)
    one = found.candidates[0]
    assert (one.columns, one.people, one.is_profile) == ((title,), PEOPLE, True)
    assert f"its {frame.height} cells share {PEOPLE} beginnings or ends" in str(one)
    assert found.question in propose_policy(Table(frame), k=2).questions[title]
    looked = shoal.profile(frame).candidates[0]
    assert (looked.people, looked.rows) == (PEOPLE, frame.height)


@pytest.mark.parametrize(
    ("title", "form"), every(5, product(["id", "patient_id", "case_no", "x7"], KEYS.split("|")))
)
def test_keys_of_members_who_differ_are_not_asked_about(title, form):
    frame, rng = keyed(title, form), np.random.default_rng(41)
    drawn = {"age": rng.integers(18, 90, frame.height), "sex": rng.choice([*"FM"], frame.height)}
    assert (title,) not in asked(frame.with_columns(pl.DataFrame(drawn)))


VISITS = "P{p:03}-{c}|{p:03}-V{c}|{y}-{p:03}|{p:03}.{c}|S{p:03}-{c}|T{c}_{p:03}|A{p:03}{l}|"
VISITS += "sub-{p:03}_ses-{c}"


@pytest.mark.parametrize("title", ["Patient no", "Probanden-ID"])
@pytest.mark.parametrize("form", VISITS.split("|"))
@pytest.mark.parametrize("own", [{}, {"sex": OWN["sex"]}, OWN])
def test_a_visit_or_a_year_within_a_number_of_several_rows_is_asked_about(title, form, own):
    rng, once = np.random.default_rng(42), keyed(title, form, **own).drop("date")
    several = once[np.repeat(np.arange(once.height), rng.integers(1, 5, once.height))]
    tests = rng.choice(["Na", "K", "Crea", "CRP"], several.height)
    found = answer(several.with_columns(pl.Series("analyte", tests)).sample(fraction=1, seed=3))
    assert found.verdict.name == "ASK"
    assert (PEOPLE, True) in [(one.people, one.is_profile) for one in found.candidates]
    assert found.asked["candidates"] == [title]


UNSHARED = {
    "years": [f"{year}-{i:04}" for year in (2020, 2021, 2022) for i in range(1, 200 + year % 7)],
    "courts": [f"{year}-K{i:03}" for year in (2020, 2021, 2022) for i in range(1, 200 + year % 7)],
    "sites": [f"S{site:02}-{i:03}" for site in range(40) for i in range(1, 16)],
    "accounts": [f"CH{i * 37 % 89:02}-{i * 7919 % 9973:04}-{i * 31 % 977}" for i in range(600)],
    "phones": [f"044-{i * 7919 % 997:03}-{i * 31 % 97:02}" for i in range(600)],
    "months": [f"ORD-{2019 + i // 120}-{i // 10 % 12 + 1:02}-{i % 10:03}" for i in range(600)],
    "samples": [
        f"S{site:02}-{(site * 16 + i) * 7919 % 9973:04}-A"
        for site in range(40)
        for i in range(1, 16)
    ],
    "insured": [f"{i * 7919 % 997:03}-{i * 31 % 97:02}-{i * 7919 % 9973:04}" for i in range(600)],
    "papers": [f"10.{1000 + i % 50}/j.{i * 7919 % 9973}" for i in range(600)],
    "records": [f"R-{i}" for i in range(600)],
    "numbers": [f"{i}" for i in range(600)],
    "letters": [f"{i * 7919 % 9973}{'ABCDEFGHIJKLM'[i % 13]}" for i in range(600)],
    "dotted": [f"{i}.{i * 31 % 97}.{i * 7 % 89}" for i in range(600)],
}


@pytest.mark.parametrize("kind", UNSHARED)
@pytest.mark.parametrize("title", ["id", "patient_id", "no", "x7"])
def test_keys_that_share_no_person_are_not_asked_about(kind, title):
    rng, cells = np.random.default_rng(41), UNSHARED[kind]
    drawn = {"ward": rng.choice([*"ABC"], len(cells)), "cost": rng.integers(1, 9, len(cells))}
    assert asked({title: cells} | drawn) == []


LATER = [f"{last}{end}" for last in (*LAST, *FIRST) for end in ("", "ez", "son", "mann", "ini")]


def named(records: int, own: bool, again: float = 0.2) -> pl.DataFrame:
    """Records of people, of whom a share has two, beside a running number; names are drawn as they
    are given, the first ones often.
    """
    rng = np.random.default_rng(41)
    people = round(records / (1 + again))
    who = np.concatenate([np.arange(people), rng.choice(people, records - people, replace=False)])
    of = {}
    for part, names in {"first": FIRST * 5, "last": LATER}.items():
        share = 1 / np.arange(1, len(names) + 1) ** 0.5
        of[part] = rng.choice(names, people, p=share / share.sum())
    names = [f"{of['first'][i]} {of['last'][i]}" for i in who]
    frame = {"no": np.arange(records), "Name": names, "amount": rng.integers(1, 99, records)}
    if own:
        frame |= {"age": rng.integers(18, 90, people)[who], "sex": rng.choice([*"FM"], people)[who]}
    return pl.DataFrame(frame).cast(pl.String)


@pytest.mark.parametrize("records", [60, 150, 400])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("again", "found"), [(0.2, [("Name",)]), (0, [])])
def test_full_names_are_asked_about_where_some_recur_and_of_namesakes_nobody(
    records, own, again, found
):
    frame = named(records, own, again)
    assert frame["Name"].n_unique() >= 0.7 * records
    assert asked(frame) == found


def test_people_recur_by_name_age_and_sex_where_many_are_namesakes():
    assert asked(named(3_000, own=True)) == [("age", "sex", "Name")]


@pytest.mark.parametrize("title", ["initials", "Initialen", "Iniciales"])
def test_initials_are_asked_about_together_with_the_birth(title):
    rng = np.random.default_rng(41)
    initials = ["".join(two) for two in rng.choice([*"ABCDEFGHKLMNPRSTW"], (PEOPLE, 2))]
    born = (np.datetime64("1940-01-01") + rng.integers(0, 20_000, PEOPLE)).astype(str)
    frame = visits("who", numbers(0, 1, PEOPLE), initials=initials, birth_date=born)
    frame = frame.drop("who").rename({"initials": title})
    assert asked(frame)[0] == (title, "birth_date")
    assert asked(frame.unique([title, "birth_date"])) == []


def in_blocks(title: str, cells: list[str], **own: object) -> pl.DataFrame:
    """Everybody's rows one below the other, of which only the first names them."""
    frame = visits(title, cells, 3, **own).sort(title)
    is_first = pl.col(title) != pl.col(title).shift(1, fill_value="")
    return frame.with_columns(pl.when(is_first).then(title).otherwise(pl.lit("")).alias(title))


@pytest.mark.parametrize("title", ["Name", "patient_id", "Nombre", "Patient", "client_no"])
@pytest.mark.parametrize("own", ["", "age sex"])
def test_whose_the_rows_below_a_name_are_is_asked_about(title, own):
    rng = np.random.default_rng(41)
    about = {"age": rng.integers(18, 90, PEOPLE), "sex": rng.choice([*"FM"], PEOPLE)}
    about = {name: about[name] for name in own.split()}
    cells = NAMES[:200] if title in ("Name", "Nombre") else [str(1000 + i) for i in range(200)]
    frame = in_blocks(title, cells, **about)
    found = answer(frame).candidates[0]
    without = frame.filter(pl.col(title) == "").height
    assert (found.columns, found.people, found.records) == ((title,), 200, frame.height)
    assert f"{without} records below one" in str(found)
    asks = propose_policy(Table(frame), k=2).questions[title]
    assert f"records without a value here: {without}; whose are they?" in asks


@pytest.mark.parametrize("title", ["Name", "patient_id"])
@pytest.mark.parametrize("own", ["none", "all", "in the first row"])
@pytest.mark.parametrize("again", [0.05, 0.1, 0.15])
def test_few_rows_below_a_name_are_asked_about_too(title, own, again):
    rng = np.random.default_rng(41)
    who = np.repeat(np.arange(PEOPLE), 1 + rng.binomial(1, again, PEOPLE) * 2)
    is_first = np.diff(who, prepend=-1) > 0
    names = [f"{first} {last}" for last in LATER for first in FIRST]
    cells = names[:PEOPLE] if title == "Name" else numbers(1000)
    frame = {title: np.where(is_first, np.array(cells)[who], "")}
    if own != "none":
        age, sex = rng.integers(18, 90, PEOPLE)[who], rng.choice([*"FM"], PEOPLE)[who]
        is_shown = is_first | (own == "all")
        frame |= {"age": np.where(is_shown, age, None), "sex": np.where(is_shown, sex, "")}
    frame["amount"] = rng.integers(1, 99, len(who))
    assert asked({name: [*map(str, cells)] for name, cells in frame.items()}) == [(title,)]


@pytest.mark.parametrize(
    ("title", "share"), [("Name", 0.5), ("Name", 0.1), ("email", 0.5), ("Name", 0.05)]
)
@pytest.mark.parametrize("people", [60, 200])
def test_names_that_some_people_did_not_give_are_not_asked_about(title, share, people):
    rng = np.random.default_rng(41)
    names = [name if rng.random() > share else "" for name in NAMES[:people]]
    frame = {title: names, "age": rng.integers(18, 90, people), "sex": rng.choice([*"FM"], people)}
    assert asked(frame) == []


@pytest.mark.parametrize(
    ("shared", "is_sure"),
    [
        *((shared, False) for shared in ("race", "nationality", "race nationality", "")),
        ("birth_year sex", True),
    ],
)
def test_a_number_within_which_relations_differ_is_sure_only_if_births_agree(shared, is_sure):
    rng, values = np.random.default_rng(41), {"birth_year": range(1940, 2005), "sex": [*"FM"]}
    own = {title: rng.choice(values.get(title, [*"ABCD"]), PEOPLE) for title in shared.split()}
    frame = visits("subscriber_id", numbers(700_000), **own)
    relations = rng.choice(["self", "spouse", "child"], frame.height)
    found = answer(frame.with_columns(pl.Series("relationship", relations)))
    together = [] if is_sure else [("subscriber_id", "relationship")]
    assert (found.verdict.name == "SURE") == is_sure
    assert [one.columns for one in found.candidates] == [*together, ("subscriber_id",)]


def test_phrases_and_marks_of_any_title_are_not_asked_about():
    words = phrases(" ".join(LETTERS), " ".join(LETTERS), "{}{} trade")[:PEOPLE]
    assert asked(visits("x7", words)) == []
    marks = visits("x7", numbers(20_000, 3)).drop("date", "cost")
    assert asked(marks) == []


@pytest.mark.parametrize("title", ["occupation", "price", "ward", "nurse_id"])
def test_columns_of_what_else_is_known_show_nobody(title):
    found = answer(visits(title, numbers(20_000, 3)))
    assert (found.verdict.name, found.may_recur) == ("NONE", True)


def waves(title: str, wave: str, units: int = 120, share: float = 0.8) -> pl.DataFrame:
    """Most units in each of five waves, in any order, with two figures of each."""
    rng = np.random.default_rng(7)
    seen = [(unit, of) for unit in range(units) for of in range(5) if rng.random() < share]
    order = rng.permutation(len(seen))
    return pl.DataFrame(
        {
            title: [str(7000 + 3 * seen[i][0]) for i in order],
            wave: [str(2015 + 2 * seen[i][1]) for i in order],
            "happy": [str(value) for value in rng.integers(0, 11, len(seen))],
            "income": [str(value) for value in rng.integers(8, 50, len(seen)) * 100],
        }
    )


@pytest.mark.parametrize("wave", ["YEAR", "wave", "Zeitpunkt", "x2", "Frage"])
@pytest.mark.parametrize("title", ["R0000100", "nomem_encr", "VPN_k", "x1"])
@pytest.mark.parametrize("share", [1.0, 0.8, 0.6])
def test_what_is_seen_once_in_each_wave_is_asked_about(title, wave, share):
    assert (title,) in asked(waves(title, wave, share=share))


def test_what_is_seen_once_in_each_trial_of_a_block_is_asked_about():
    trial = trials("x1", "{}")
    assert ("x1",) in asked(
        trial.rename({name: f"y{i}" for i, name in enumerate(trial.columns[1:])})
    )


UNITS = "Firma Jahr|product year|Filiale year|species plot|x1 sex|x1 class"


@pytest.mark.parametrize(("title", "wave"), [row.split() for row in UNITS.split("|")])
def test_products_places_and_who_is_told_by_two_sexes_are_not_asked_about(title, wave):
    assert not asked(waves(title, wave))


def test_values_that_are_seen_twice_in_a_wave_are_not_asked_about():
    frame = waves("x1", "x2")
    twice = frame.with_columns(x2=pl.Series(np.random.default_rng(8).permutation(frame["x2"])))
    assert not asked(twice)


@pytest.mark.parametrize("number", ["indiv", "pno", "ind_id", "pernum", "person_id"])
@pytest.mark.parametrize("most", [5, 8])
def test_a_member_of_a_household_is_told_by_both_numbers_first(number, most):
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, most + 1, 120)
    within = np.concatenate([np.arange(1, n + 1) for n in sizes])
    again = np.repeat(np.arange(len(within)), rng.integers(1, 5, len(within)))
    frame = {"hhid": np.repeat(np.arange(120), sizes)[again], number: within[again]}
    frame["hours"] = rng.integers(0, 60, len(again))
    assert asked(frame) == [("hhid", number), (number,)]


def test_full_names_that_repeat_beside_a_number_of_each_row_are_asked_about():
    frame = visits("Student Name", NAMES).with_row_index("Student ID", 1)
    assert ("Student Name",) in asked(frame)


@pytest.mark.parametrize("flag", ["emp", "student", "member"])
def test_whether_somebody_is_employed_does_not_hide_who_is_followed(flag):
    frame = waves("idauniq", "syear")
    flags = np.random.default_rng(3).choice(["y", "n"], frame.height)
    assert asked(frame.with_columns(pl.Series(flag, flags))) == [("idauniq",)]


def moved(title: str, group: str, form: str = "{}", people: int = 60) -> pl.DataFrame:
    """Records of people who are in several of three groups, as patients are in wards."""
    frame = visits(title, [form.format(i + 1) for i in range(people)], 8).drop("clinic")
    groups = np.random.default_rng(6).choice(["ICU", "Surg", "Med"], frame.height)
    return frame.with_columns(pl.Series(group, groups))


GROUPS = ["ward", "unit", "store", "class", "team", "arm", "session", "hospital"]


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("title", ["patient_id", "participant", "Subject", "customer_no", "id"])
def test_a_running_number_beside_a_group_is_asked_about_alone_first(group, title):
    """Together with the group, who is in several would count several times."""
    assert asked(moved(title, group))[:2] == [(title,), (group, title)]


@pytest.mark.parametrize("title", ["uid", "ID", "user", "member", "client", "account", "Subject"])
@pytest.mark.parametrize("signs", [["-1"], ["-9"], ["-99", "-98"], ["-1", "-8", "-999", "0"]])
def test_a_sign_for_nobody_below_zero_hides_no_number_of_people(title, signs):
    frame = visits(title, [*signs, *(str(i + 1) for i in range(100))])
    (found,) = answer(frame).candidates
    assert found.columns == (title,)
    assert found.people == 100 + ("0" in signs)


MARKS = ["student", "child", "citizen", "voter", "resident", "victim", "volunteer", "emp", "mother"]


@pytest.mark.parametrize("title", [*MARKS, "patient", "subject"])
@pytest.mark.parametrize("codes", ["01", "12", "1234", "01234"])
@pytest.mark.parametrize("own", [True, False])
def test_marks_under_words_for_people_are_not_asked_about(title, codes, own):
    rng = np.random.default_rng(8)
    frame = {title: rng.choice([*codes], 400), "region": rng.choice([*"NSW"], 400)}
    if own:
        frame |= {"sex": rng.choice([*"mf"], 400), "age": rng.integers(18, 90, 400)}
    assert asked(frame) == []


def test_three_or_four_under_a_word_for_people_come_first_where_others_are_asked_about():
    rng = np.random.default_rng(8)
    frame = {"user": np.sort(rng.integers(1, 5, 900)), "calories": rng.integers(1200, 3500, 900)}
    frame["day"] = (np.datetime64("2024-01-01") + rng.integers(0, 900, 900)).astype(str)
    assert asked(frame) == [("user",), ("calories",)]
    assert asked(frame | {"user": frame["user"] % 2}) == [("calories",)]


@pytest.mark.parametrize("cells", ["12345", ["S1", "S2"]])
def test_few_people_under_a_word_for_them_are_asked_about(cells):
    assert asked(visits("patient", [*cells], 40))[0] == ("patient",)


@pytest.mark.parametrize("form", ["{}", "P{:03}"])
def test_numbers_that_go_on_from_site_to_site_are_of_people_alone(form):
    frame = moved("patient_id", "site", form)
    site = frame["patient_id"].str.extract(r"(\d+)").cast(pl.Int64) % 3
    found = answer(frame.with_columns(site=site))
    assert [one.columns for one in found.candidates] == [("patient_id",)]


OTHERS = (
    "URN school_urn rut_empleador siret_insee_firm matricola_contatore matricule_vehicule cpr_læge"
    " pesel_lekarza DNI_docente bsn_arts codice_fiscale_datore nif_entidad mother_nhs_number"
    " pesel_matki guarantor_ssn case_cpr KVNR_Hauptversicherter Kennziffer cartella_clinica"
)


CIVIL = numbers(217, 1, 60, "7.443.{}-9")
WRITTEN = "101-{:04} 2019-{:05} 19850102-{:04} {:02}-34-56 1,{:03} ({}) -{} 1.{:03}E+09 10{}.0"
SURE = [
    *((title, CIVIL) for title in "insee rut nie upn patient_nhs_number fnr".split()),
    *(
        (title, numbers(10, 1, 80, form))
        for title in ("patient_id", "ssn")
        for form in (*WRITTEN.split(), "201903{:02}")
    ),
]


@pytest.mark.parametrize("title", OTHERS.split())
@pytest.mark.parametrize("own", [True, False])
def test_civil_numbers_beside_words_for_others_are_never_sure(title, own):
    frame = visits(title, CIVIL, 7)
    rng = np.random.default_rng(10)
    if own:
        sexes, ages = rng.choice([*"mf"], frame.height), rng.integers(18, 65, frame.height)
        frame = frame.with_columns(sex=pl.Series(sexes), age=pl.Series(ages))
    assert asked(frame) == ([] if own else [(title,)])


@pytest.mark.parametrize(("title", "cells"), SURE)
def test_civil_numbers_and_those_in_any_form_are_sure_where_births_agree(title, cells):
    found = answer(visits(title, cells, 7, born=range(1930, 1930 + len(cells))))
    assert (found.verdict.name, found.candidates[0].columns) == ("SURE", (title,))


HEADED = (
    "患者受付番号 客户交易号 员工工资单号 会員予約番号 被保険者請求番号 Kundenbonnr kunde_bon_nr "
    "num_ddt_cliente "
    "id_visita_paciente id_episodio_utente id_pedido_cliente nr_zamowienia_klienta visit_id_patient"
    " id_ricovero_paziente id_prelevement_patient id_dispositivo_usuario id_centro_alumno mother_id"
    " class_student_id family_patient_id couple_person_id case_patient_id index_person_id"
    " matched_patid proband_id lege_personnr id_assure patient_scan_id patient_biopsy_no"
    " patient_tumor_id student_exam_no donor_bag_no voter_ballot_no Patientenprobennummer"
    " Kundenbestellnummer"
)


@pytest.mark.parametrize("title", HEADED.split())
def test_a_number_that_is_named_for_a_thing_and_a_person_is_never_sure(title):
    frame = visits(title, numbers(7000, 3), 3, region=[*"NSEW"] * 75, born=range(1700, 2000))
    assert asked(frame)[:1] == [(title,)]
    assert asked(frame.drop("born"))[:1] == [(title,)]
    assert asked(frame.drop("born").rename({title: "tenant_id"})) == [("tenant_id",)]
    found = answer(frame.rename({title: "patient_id"}))
    assert (found.verdict.name, found.candidates[0].columns) == ("SURE", ("patient_id",))


def test_a_number_that_may_be_of_a_visit_is_asked_about_behind_one_of_a_file():
    frame = visits("num_hist", numbers(7000, 3), 6)
    visit = pl.concat_str("num_hist", "clinic").rank("dense")
    assert asked(frame.with_columns(id_visita_paciente=visit)) == [
        ("num_hist",), ("id_visita_paciente",),
    ]  # fmt: skip


NUMBERING = {
    "SURE": """
        studente alunno doente pessoa borger pracownik segurado legajo licensee Personenkennzeichen
        Probanden_ID nr_pacjenta id_studente personeelsnummer kundnr KdNr Steuer_ID Studierenden-ID
        Mitarbeitenden-Nr Imputado Oskarżony Detento Осужденный 被告人 Jobseeker Ciudadano
        Gedetineerde
    """,
    "ASK": "Identificador Azonosító Tunniste Идентификатор 識別子",
}


@pytest.mark.parametrize(
    ("verdict", "title"), [(one, title) for one in NUMBERING for title in NUMBERING[one].split()]
)
def test_words_for_people_of_more_languages_number_them(verdict, title):
    found = answer(visits(title, numbers(count=150), region=[*"NSE"] * 50))
    assert (found.verdict.name, found.candidates[0].columns) == (verdict, (title,))


@pytest.mark.parametrize("title", ["num_hist", "n_processo", "num_adh", "num_benef", "xyz"])
@pytest.mark.parametrize("first", [1, 7001])
def test_a_number_of_any_title_beside_what_agrees_is_asked_about(title, first):
    frame = visits(title, numbers(first, count=150), region=[*"NSE"] * 50)
    assert asked(frame) == [(title,)]
    counts = np.random.default_rng(3).integers(0, 90, frame.height)
    assert not asked(frame.with_columns(pl.Series(title, counts)))


RUNNING = "TN|pp|ppnr|sbj|fp|badany|대상자번호|Mitarbeitende|SuS|کد بیمار"


@pytest.mark.parametrize("title", RUNNING.split("|"))
@pytest.mark.parametrize("first", [1, 1001])
def test_a_running_number_under_any_title_is_doubted(title, first):
    found = answer(visits(title, [str(first + i) for i in range(100)]))
    assert title in found.doubted or (title,) in [one.columns for one in found.candidates]


@pytest.mark.parametrize("title", ["minutes", "pages", "score"])
@pytest.mark.parametrize("first", [0, 40])
def test_what_begins_with_another_number_is_not_doubted(title, first):
    assert not answer(visits(title, [str(first + i) for i in range(100)])).doubted


ROLES = "Leiter PersNr|Boss personnel no|Mentor student ID|Werber Kundennummer"
ROLES += "|Erfasser PersNr|Bürge Kundennummer|Foreman works employee no|rx_patient_no"
ROLES += "|mgr_emp_no|owner_person_id"


@pytest.mark.parametrize("title", ROLES.split("|"))
def test_a_number_behind_an_unknown_word_is_sure_only_if_people_confirm_it(title):
    frame = visits(title, numbers(7000, 3, 60), 5, region=[*"NSE"] * 20)
    assert asked(frame) == [(title,)]
    frame = visits(title, numbers(7000, 3, 60), 5, born=range(1940, 2000), sex=[*"mf"] * 30)
    assert answer(frame).verdict.name == "SURE"


@pytest.mark.parametrize("titles", [("surname", "first name"), ("Nom", "Prénom"), ("Name",)])
@pytest.mark.parametrize("is_own", [True, False])
def test_a_number_whose_records_have_other_names_is_not_sure(titles, is_own):
    frame = visits("Kundennummer", numbers(7000, 3, 60), 5, region=[*"NSE"] * 20)
    who = frame["Kundennummer"].rank("dense") - 1 if is_own else range(frame.height)
    drawn = np.random.default_rng(8).permutation(NAMES)
    parts = [[str(drawn[i % len(drawn)]) for i in who]]
    if len(titles) == 2:
        parts = [[name.split()[at] for name in parts[0]] for at in (1, 0)]
    found = answer(frame.with_columns(map(pl.Series, titles, parts)))
    assert (found.verdict.name == "SURE") == is_own


@pytest.mark.parametrize(
    "titles", ["Name|First name", "Nom|Prénom", "Name|Vorname", "Nome|Apelido"]
)
def test_namesakes_of_a_list_of_names_in_two_columns_are_not_asked_about(titles):
    rng = np.random.default_rng(12)
    cells = [rng.choice(words, 600) for words in (LAST, FIRST)]
    frame = pl.DataFrame(dict(zip(titles.split("|"), cells, strict=True)))
    assert not asked(frame.with_columns(Betrag=pl.Series(rng.integers(1, 999, 600))))


@pytest.mark.parametrize("title", ["Modulo", "EMPI", "K_ID_X"])
@pytest.mark.parametrize("own", ["year of birth", "age"])
@pytest.mark.parametrize("each", [2, 4])
def test_codes_that_agree_on_a_year_of_birth_alone_are_asked_about(title, own, each):
    rng = np.random.default_rng(5)
    codes = [f"{code}" for code in rng.choice(np.arange(10_000, 99_999), 200, replace=False)]
    born = rng.integers(1930, 2005, 200) - (2024 if own == "age" else 0)
    frame = visits(title, codes, each, **{own: list(abs(born))})
    assert (title,) in asked(frame)
    assert not asked(frame.with_columns(pl.Series(title, rng.permutation(frame[title]))))


@pytest.mark.parametrize("titles", ["HHID|PNO", "Haushalt|Person", "hogar|persona", "room|person"])
@pytest.mark.parametrize("third", [None, "Zimmer", "Team", "Region"])
@pytest.mark.parametrize("couples", [True, False])
def test_members_of_households_with_numbers_of_their_own_are_people(titles, third, couples):
    rng = np.random.default_rng(6)
    household = np.repeat(np.arange(250), 2 if couples else 1 + rng.poisson(1.6, 250))
    member = np.arange(len(household)) - np.searchsorted(household, household)
    cells = dict(zip(titles.split("|"), [household + 1001, member + 1], strict=True))
    if third:
        cells[third] = rng.integers(1, 7, 250)[household]
    cells["income"] = 100 * rng.integers(0, 60, len(household))
    assert not asked(cells)
