"""What the words of a column's name may mean: facts of many languages, without rules.

Words are compared in small letters and without accents.
"""

from __future__ import annotations

import unicodedata


def fold(text: str) -> str:
    """The text in small letters, without accents."""
    signs = unicodedata.normalize("NFKD", text)
    return "".join(sign for sign in signs if not unicodedata.combining(sign)).casefold()


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(word) for word in text.split())


NUMBER = _words("""
    id ids no nr nbr num nummer number key numero numer code hash identifiant identifier
    ident kennung kennzahl ziffer n番号 番号 号 号码 編號 编号 номер nro uid guid ref reference
    index
""")
"""Words for a number: an identifier, a key, a code."""

PERSON = _words("""
    pid patient patienten patients pat person persons personal personnel subject subj
    usubj participant proband respondent resp insured insuree member mitglied customer
    kunde kunden client klient klienten consumer shopper buyer user usr student pupil
    schuler schueler learner employee worker mitarbeiter angestellte staffmember salarie
    employe empleado trabajador resident bewohner citizen burger buerger inhabitant
    donor spender voter wahler rider passenger driver fahrer leser reader borrower
    athlet athlete player spieler versicherte versicherten versicherter assure
    beneficiaire alloc allocataire eleve etudiant usager adherent paciente alumno
    usuario cliente socio asegurado persona paziente assistito utente pacjent osoba
    ubezpieczonego ubezpieczony uczen klienta potilas asiakas henkilo deltagare elev
    пациент клиент ученик студент человек
    患者 会员 會員 顧客 客户 客戶 学生 用户 会員 社員 員工 员工 被保険者 参加者
    caller calling inmate prisoner detainee mother mutter child kind guest gast tenant
    mieter candidate bewerber volunteer victim suspect hasta beteg 환자 회원 고객 المريض owner
    defendant offender applicant claimant subscriber
""")
"""Words for the people of a table, by what they are in it."""

WEAK = _words("""
    pid user usr member mitglied client klient employee worker mitarbeiter driver fahrer
    passenger owner socio personal staffmember applicant subject subj person reader
""")
"""Words for people that may mean a clerk, a process, a school subject or a line number."""

AMBIGUOUS = _words("kind")
"""Words for people that mean another thing in another language, unless they are numbered."""

CIVIL = _words("""
    ssn nhs ahv avs svnr sozialversicherungsnummer pesel dni nif nie nir bsn cpf curp
    aadhaar снилс инн personnummer cpr hetu fiscale passport passeport ausweisnummer
    insee matricule matricula mrn ehr emr historia hcn nino tin cedula rut egn cnp jmbg
    身份证 身份证号 マイナンバー
""")
"""Numbers that a state, an insurance or a hospital gives to one person."""

CONTACT = _words("""
    email mail phone mobile telephone telefon tel handy natel msisdn imsi imei iccid
    calling caller sender from username login epost correo courriel 电话 手机 電話 メール
    whatsapp
""")
"""Where one person is reached."""

OTHER_END = _words("""
    called callee to recipient receiver dest destination dst b_number contact referrer
""")
"""The other end of a call, a letter or an acquaintance."""

PROXY = _words("""
    device tracker geraet gerat card karte carte tarjeta ausweis badge account acct
    konto compte cuenta iban contract vertrag contrat contrato policy police poliza
    polizza cookie token visitor session sessionid pseudonym pseudo alias mac ip
    medallion license licence plate kennzeichen vehicle fahrzeug car sensor watch
    handset subscription abo medaillon hack loyalty
""")
"""What stands for one person, but may be lent, shared or changed."""

EVENT = _words("""
    case fall visit besuch encounter episode episodio sejour stay aufenthalt order
    bestellung commande pedido invoice rechnung facture factura receipt beleg quittung
    trip ride fahrt ticket booking buchung transaction transaktion claim schaden loan
    payment paiement pago paymentid record row zeile line sample probe specimen test lab
    accession dossier akte auftrag event job 病例 订单
""")
"""What happens to a person, more than once maybe."""

GROUP = _words("""
    household haushalt hh hogar foyer menage family familie famille familia village dorf
    community school schule ecole escuela class klasse classe clinic klinik clinique
    hospital spital krankenhaus hopital ward station unit site siteid center centre
    zentrum department dept abteilung service team store shop filiale laden branch
    agency agentur office toimipiste region district county area zone building gebaeude
    floor room zimmer bezirk kanton country state city town ort company firma employer
    arbeitgeber psu cluster stratum strata study studyid arm cell tower ap access
    access_point pair paar couple twin zwilling match matched matching set litter
    klinikum
""")
"""Where several people belong together."""

STAFF = _words("""
    doctor doc dr physician arzt medecin medico doktor врач nurse pfleger teacher lehrer
    enseignant profesor professor judge richter juge agent clerk cashier kassierer
    seller verkaufer author autor auteur operator interviewer reviewer provider
    prescriber gp hausarzt surgeon therapist coach trainer manager
""")
"""People who serve those of whom the table is."""

THING = _words("""
    product produkt produit producto item article artikel articulo sku ean isbn book
    buch titel title barcode batch lot charge los kit drug medikament atc icd diag
    diagnosis dx procedure ops cpt model modell page url path file version type typ art
    status category kategorie codebook question frage wave welle vague visitnum month
    monat mois year jahr annee week day tag date datum time zeit timestamp ts hour count
    anzahl amount betrag price preis value wert weight score zip plz postcode postal
    postleitzahl postinumero cp isco noga nace naics occupation beruf profession ammatti
    industry tax medication medicine speciality specialty fach course kurs grade zone
    location lat lon route line lines agent browser os
""")
"""Neither people nor what belongs to one."""

SEX = _words("""
    sex gender geschlecht sexe sexo genre genero sesso genere plec kon sukupuoli nem
    cinsiyet 성별 الجنس пол 性別 性别
""")

AGE = _words("age alter edad eta wiek leeftijd ika возраст 年齢 年龄 alder iage")

BIRTH = _words("""
    birth birthdate birthday birthyear birthdt yob dob born geburt geburtsdatum
    geburtstag geburtsjahr geboren jahrgang naissance nacimiento nascita urodzenia fodt
    syntyma szuletesi dogum 출생 출생연도 الميلاد рождения 生年 生年月日 出生 出生日期
""")

KEEP = _words("""
    race ethnicity ethnic rasse nationality nationalite nationalitat nationalitaet
    nacionalidad citizenship height groesse hair eye blood blutgruppe 民族
""")
"""What a person keeps for life, or nearly so."""

FIRST = _words("""
    first firstname forename given givenname vorname prenom nombre imie fname nome
""")

LAST = _words("""
    last lastname surname nachname familienname familyname apellido apellidos nazwisko
    lname cognome
""")

NAME = _words("name fullname namen nom 姓名 氏名 имя фио")

PLACE = _words("zip zipcode postcode postal plz postleitzahl postinumero 邮编")

BODY = _words("weight gewicht poids peso bmi height groesse taille tall 体重 身長")
"""Measures of the body, which are steady over a short time."""

COUNT = _words("num number n no count anzahl nb nbr nombre total sum")
"""First words of the names of counts, such as `num_medications`."""

TIME = _words("""
    ts time timestamp stamp date datum zeit epoch unix start end at when seen heure hora
""")
"""Words that make a whole number a moment."""

NO_NUMBER_ENDS = _words("""
    paid covid valid invalid grid solid fluid rapid said hybrid android steroid thyroid
    lipid acid avoid madrid squid opioid rheumatoid
""")
"""Words that end as a number does, and are none."""

WEAK_CONTACT = _words("from login sender username calling caller")
"""Contacts only where nothing else stands in the name."""

FLAG = _words("is has num count failed")
"""Words by which a name asks or counts, rather than names."""

SESSION = _words("session sitzung")
"""Words for a stay of one person, within which others may be numbered."""


PERSONAL = ("sex", "birth", "age", "keep")
"""Classes of columns that say who somebody is, and on which records of one person agree."""

NUMBER_AFFIXES = tuple(
    fold(affix) for affix in "nummer number nbr num nr no id key code 番号 号 番 номер".split()
)
"""How the names of numbers begin or end, the longer of two first."""

KNOWN = frozenset().union(
    *(PERSON, CIVIL, CONTACT, PROXY, EVENT, GROUP, STAFF, THING, SEX, AGE, BIRTH, KEEP, FIRST),
    *(LAST, NAME, PLACE, OTHER_END, NUMBER),
)
"""Every word that is not split further."""
