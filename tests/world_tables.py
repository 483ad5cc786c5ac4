"""Small invented tables that look like data of the world, each with the truth about its people.

`TABLES` describes them in text, each as `# name | truth | rows | columns`:

- The truth is the unit that is one person (`row`: every row is its own person), `?` (only the
  table's owner can tell) or `-` (it numbers nobody).
- `person 400 > row x2.5, doctor 12 per row, shuffled`: 400 people have one or more rows, 2.5 on
  average (`x=2`: two each). A chain may have more steps; its last is the row. Every row has one of
  12 doctors, some of whom are busier. `wave nth person` counts the rows of a person from 0.
- A column is its name, the unit whose own it is (`~`: in 4 % of the rows another's) and its values:
  `a|b`, `1..9`, `0.5..9.5`, `day 1990..2000`, `time 2020..2021`, a number of its own (`P%05d`),
  `hash12`, `name`, `family`, `40*E%02d` (one of 40), `#site` (the unit's number within its site) or
  `={site}-{id}` (of other columns); then ` +wave` (it grows).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import polars as pl

TABLES = """\
# hospital visits | person | person 400 > row x2.5, doctor 12 per row, shuffled |
visit_id: row V%06d; patient_id: person %06d; birth_date: person day 1930..2015; sex: person f|m;
admitted: row time 2021..2023; diagnosis: row 60*E%02d; doctor: doctor D%03d; charge: row 20..900
# laboratory results, long | person | person 150 > order x2 > row x5 | order_no: order L%07d;
pat_no: person %08d; sex: person F|M; yob: person 1930..2012; drawn: order time 2022..2023;
test: row NA|K|CREA|HB|WBC|PLT|ALT|CRP; value: row 0.1..180.0
# taxi trips | ? | driver 60 > row x25, cab 40 per driver, shuffled | medallion: cab hash8;
hack_license: driver hash12; pickup_datetime: row time 2013..2013; passenger_count: row 1|2|3|4;
trip_distance: row 0.3..22.0; zone: row 60*%03d; fare: row 4.0..70.0
# call records | ? | caller 150 > row x9, callee 300 per row, cell 25 per row, shuffled |
caller_number: caller 4915%08d; called_number: callee 4917%08d; start: row time 2022..2022;
duration_s: row 1..1800; cell_id: cell %05d; call_type: row voice|sms|data
# lessons with a misleading subject | person | person 120 > row x6, teacher 7 per row, shuffled |
subject: row Maths|English|Science|History|Art; subject_id: row 5*SUB%d; learner: person %05d;
year_group: person 7|8|9|10; sex: person F|M; date: row day 2022..2023; score: row 0..100
# panel survey | person | person 250 > row x=4, wave nth person | pid: person %06d;
wave: row 1..1 +wave; age: person 18..80 +wave; sex: person 1|2;
region: person~ north|south|east|west; employed: row 0|1; satisfaction: row 0..10
# household survey, one row per person | row | household 300 > row x2.4 | hh_id: household %05d;
pno: row #household; age: row 0..95; sex: row male|female;
relationship: row head|spouse|child|parent; hh_income: household 900..9000
# household panel | person | household 120 > person x2.2 > row x=4, wave nth person |
hhid: household %06d; pernum: person #household; syear: row 2015..2015 +wave; sex: person 1|2;
yob: person 1930..2010; income: row 0..6000; health: row 1..5; urban: household 0|1
# CDISC adverse events | person | site 12 > person x10 > row x3 | STUDYID: row XY-301|XY-301;
DOMAIN: row AE|AE; SITEID: site %03d; SUBJID: person #site;
USUBJID: person =XY-301-{SITEID}-{SUBJID}; AESEQ: row #person; SEX: person F|M; AGE: person 18..80;
AEDECOD: row HEADACHE|NAUSEA|FATIGUE|RASH; AESEV: row MILD|MODERATE|SEVERE
# CDISC demographics | row | site 15 > row x20, investigator 15 per site |
STUDYID: row XY-301|XY-301; SITEID: site %03d; INVID: investigator %05d; SUBJID: row #site;
USUBJID: row =XY-301-{SITEID}-{SUBJID}; AGE: row 18..80; SEX: row F|M; ARM: row ACTIVE|PLACEBO
# trial, numbers by site | person | site 14 > person x12 > row x=5, visit nth person |
site: site %02d; subject: person #site; visit: row 1..1 +visit; sex: person F|M; age: person 18..85;
arm: person A|B; sbp: row 95..180; dbp: row 55..110
# wearables whose devices are swapped | person | person 90 > row x=14, device 110 per row |
device_id: device FB%06d; user_id: person %05d; sex: person F|M; birth_year: person 1950..2004;
steps: row 200..22000; resting_hr: row 45..90; sleep_min: row 200..600
# web log without accounts | ? | visitor 200 > session x2 > row x4 | ip: visitor 10.0.%d;
user_agent: visitor 12*Mozilla/5.0-%02d; session_id: session hash16; time: row time 2023..2023;
path: row /|/cart|/login|/help; status: row 200|304|404; bytes: row 200..90000
# app events of accounts | person | person 140 > session x3 > row x4 | event_id: row hash16;
user_id: person %08d; session_id: session hash12; ts: row time 2023..2023;
client_version: session 3.1|3.2|3.3; user_agent: person 9*UA-%02d; country: person DE|FR|US|BR;
age_band: person 18-24|25-34|35-44|45+; gender: person f|m; event_name: row open|tap|buy|close
# customer orders with lines | person | person 200 > order x2 > row x2.5, shuffled |
order_id: order %07d; line: row #order; customer_id: person C%05d; postcode: person 90*%05d;
birth_year: person 1940..2005; sku: row 50*SKU-%04d; price: row 2.0..180.0
# payroll by month | person | person 110 > row x=12, month nth person, manager 9 per person |
month: row 1..1 +month; employee_no: person %05d; manager_id: manager %05d; sex: person F|M;
date_of_birth: person day 1958..2002; department: person~ sales|it|hr|plant; gross: row 1800..9500
# police stops | row | row 900, officer 40 per row, beat 20 per row | stop_id: row %08d;
officer_id: officer %05d; beat: beat %03d; driver_age: row 16..85;
driver_race: row white|black|hispanic|asian; driver_gender: row M|F
# polling stations | - | row 700, ward 40 per row | station_no: row %05d; ward_code: ward E%05d;
registered: row 300..1900; votes_cast: row 100..1500; spoilt: row 0..30; party_a: row 0..700;
party_b: row 0..700; person_count: row 1..12
# register of voters | row | row 1200, precinct 20 per row, street 90 per row | voter_id: row %09d;
family_name: row 60*family; birth_year: row 1925..2004; gender: row F|M; precinct: precinct P%03d;
party: row DEM|REP|NPA
# library loans | person | person 170 > row x5, item 400 per row, clerk 5 per row, shuffled |
loan: row %07d; borrower_card: person 2%08d; barcode: item 3%08d; title: item 150*Title %03d;
desk_staff: clerk family; age_group: person child|adult|senior; gender: person f|m
# football by match, names alone | person | person 220 > row x8, team 14 per person |
match_id: row 120*%06d; player: person name; team: team Team %02d; position: person GK|DF|MF|FW;
birth_date: person day 1985..2004; minutes: row 1..90; goals: row 0|0|1|2; shirt: person 1..30
# marathon of several years | person | person 500 > row x1.8, event 6 per row |
race: event Marathon-20%02d; bib: row %05d; runner: person name; yob: person 1950..2002;
gender: person W|M; nation: person GER|AUT|SUI|KEN; finish_min: row 130..330
# sensor network | - | sensor 40 > row x=30 | sensor_id: sensor %04d; room: sensor 12*R%02d;
timestamp: row time 2023..2023; temperature: row 17.0..28.0; humidity: row 20..70;
battery: row 2.9..3.3; person_count: row 0..14
# weather stations | - | station 50 > row x=24 | STATION: station GHCND%08d;
NAME: station 50*Town %02d; DATE: row day 2022..2022; TMAX: row -5.0..38.0; TMIN: row -15.0..24.0;
PRCP: row 0.0..40.0; LATITUDE: station 47.0..54.9; ELEVATION: station 1..900
# energy meters | ? | meter 60 > row x=40 | LCLid: meter MAC%06d; stdorToU: meter Std|ToU;
DateTime: row time 2012..2013; KWH_hh: row 0.0..3.9;
Acorn_grouped: meter Affluent|Comfortable|Adversity
# product reviews | person | person 500 > row x2, product 60 per row, shuffled |
reviewer_id: person A%09d; asin: product B0%08d; product_title: product 60*Product %03d;
overall: row 1..5; verified: row true|false; review_date: row day 2015..2023; helpful: row 0..20
# customers with two cards | person | person 160 > card x1.6 > row x5, merchant 50 per row |
txn_id: row hash16; card_hash: card hash20; customer_no: person %08d; dob: person day 1940..2004;
sex: person F|M; merchant_id: merchant M%05d; amount: row 1.0..300.0; booked: row time 2023..2023
# prison bookings | person | person 300 > booking x1.5 > row x2.2, judge 9 per booking |
booking_no: booking 2023-%06d; inmate_no: person %07d; sex: person M|F; race: person B|W|H;
birth_year: person 1950..2004; charge_seq: row #booking; charge: row 30*PC%03d; judge: judge family
# adoptions | row | row 420, agency 9 per row, worker 25 per row | case_id: row AD%05d;
agency: agency Agency %d; caseworker_id: worker W%03d; child_sex: row F|M; child_age: row 0..17;
parent_1_age: row 25..55; parent_2_age: row 25..55; finalised: row day 2015..2022
# genealogy | row | family 250 > row x3 | individual: row I%05d; father_id: family I9%04d;
mother_id: family I8%04d; family_name: family family; sex: row M|F; born: row day 1790..1900;
died: row day 1850..1980; parish: family 20*Parish %02d
# vaccine, two doses | person | person 500 > row x=2, dose nth person, batch 20 per row, shuffled |
vaccinee_no: person %08d; dose: row 1..1 +dose; batch_no: batch EX%04d;
vaccine: batch Comirnaty|Spikevax; sex: person f|m; age: person 12..95; given: row day 2021..2021
# vaccinations, one row each | row | row 800, batch 25 per row, vaccinator 12 per row |
batch_number: batch AB%04d; vaccinator_id: vaccinator %04d; sex: row f|m;
birth_year: row 1925..2010; given: row day 2021..2021; adverse_reaction: row none|mild|severe
# vaccinations en France | person | person 350 > row x2.2, lot 18 per row, médecin 10 per row |
n° assuré: person 2%012d; nom: person family; date de naissance: person day 1930..2015;
sexe: person F|H; département: person 20*%02d; n° de lot: lot L%05d; médecin: médecin family
# consultas en España | person | person 300 > row x2.8, médico 9 per row, shuffled |
NHC: person %07d; fecha_consulta: row day 2021..2022; fecha_nacimiento: person day 1930..2015;
sexo: person hombre|mujer; código_médico: médico %04d; diagnóstico: row 40*J%02d
# 就诊记录 | person | person 260 > row x3, 医生 11 per row |
就诊号: row %08d; 患者编号: person %06d; 性别: person 男|女; 出生日期: person day 1930..2015;
科室: row 内科|外科|儿科|眼科; 医生工号: 医生 %04d; 费用: row 20.0..2000.0
# приёмы пациентов | person | person 280 > row x2.5, врач 10 per row | номер_карты: person %06d;
пол: person м|ж; дата_рождения: person day 1930..2015; врач: врач family;
отделение: row терапия|хирургия|неврология; диагноз: row 30*K%02d; дата_приёма: row day 2021..2023
# notas de alunos | person | person 160 > row x6, professor 8 per row | matrícula: person 20%06d;
sexo: person F|M; data_nascimento: person day 2003..2009;
disciplina: row Matemática|Português|História|Física; código_professor: professor %03d
# lista płac | person | person 90 > row x=12, miesiąc nth person | nr_pracownika: person %04d;
płeć: person K|M; data_urodzenia: person day 1955..2002; dział: person~ produkcja|sprzedaż|IT;
miesiąc: row 1..1 +miesiąc; wynagrodzenie: row 3500..15000
# 受診記録 | person | person 240 > row x3, 医師 9 per row |
患者番号: person %08d; 性別: person 男|女; 生年月日: person day 1930..2015;
診療科: row 内科|外科|眼科; 医師コード: 医師 %03d; 点数: row 70..3000
# Patienten ohne Nummer | person | person 300 > row x2.2, arzt 8 per row, shuffled |
Name: person name; Geburtsdatum: person day 1930..2015; Geschlecht: person w|m; PLZ: person 40*%05d;
Behandelnder Arzt: arzt name; Datum: row day 2022..2023; ICD: row 50*M%02d; Betrag: row 15.0..900.0
# examinations before and after | person | person 350 > row x=2, time nth person |
participant: person %04d; time: row 0..0 +time; group: person control|treated; sex: person 1|2;
age: person 20..70; score: row 0..100; rater: row 6*R%d
# two keys of one person | person | person 260 > row x3, doctor 9 per row, shuffled |
mrn: person %08d; enterprise_id: person hash12; encounter: row E%08d; sex: person F|M;
age: person 20..90; provider: doctor %05d; department: row ED|ICU|OR; los_days: row 0..20
# casualties of road accidents | row | accident 600 > row x1.6 |
accident_reference: accident 2021%08d; casualty_reference: row #accident;
person_count: accident 1..6; age_of_casualty: row 0..95; sex_of_casualty: row 1|2
# opinions of patients | row | row 650, provider 30 per row, hospital 9 per row |
hospital_id: hospital H%03d; provider_id: provider %05d; patient_age: row 18..95;
patient_sex: row F|M; patient_satisfaction: row 1..5; waited_min: row 0..180
# attendance of events | person | person 200 > row x4, event 25 per row, shuffled |
event_id: event EV%04d; event_date: event day 2022..2023; attendee_email: person a%05d@example.org;
company: person 60*Company %02d; job_title: person 25*Job %02d; checked_in: row yes|no
# batches of a plant | - | row 900, operator 15 per row, batch 120 per row | batch_no: batch B%05d;
machine: row M1|M2|M3|M4; shift: row early|late|night; operator_id: operator %04d;
weight_g: row 480.0..520.0; defect: row 0|0|1; produced: row time 2023..2023
# airline passengers | row | booking 500 > row x1.7, flight 40 per booking | pnr: booking PN%05d;
flight_no: flight XY%04d; seat: row %dA; pax_no: row #booking; sex: row F|M;
birth_year: row 1940..2020; fare_class: booking Y|J|M; nationality: row DE|FR|US|IN
# posts in a forum | person | person 150 > row x7, thread 90 per row, shuffled | post_id: row %08d;
thread_id: thread %06d; author: person hash10; joined: person day 2008..2022;
posted: row time 2022..2023; words: row 3..400; likes: row 0..50; board: thread cars|food|travel
# twins | row | pair 300 > row x=2 | pair_id: pair %04d; twin_no: row #pair; zygosity: pair MZ|DZ;
sex: row F|M; birth_year: pair 1950..2000; height: row 150..198; bmi: row 17.0..38.0;
smoker: row yes|no; mother_age: pair 18..42
# register of births | ? | mother 500 > row x1.6, midwife 20 per row | birth_no: row %08d;
mother_id: mother %07d; mother_birth_year: mother 1975..2003; midwife: midwife %04d;
child_sex: row f|m; weight_g: row 1900..4600; gestation_weeks: row 33..42; region: mother 12*R%02d
# pupils in classes | row | school 20 > class x3 > row x15, teacher 60 per class |
school_id: school %04d; class_id: class %05d; teacher_id: teacher T%03d; sex: row F|M;
age: row 9..12; reading: row 200..700; maths: row 200..700; migration: row 0|1; books: row 1..5
# intensive care | person | person 200 > admission x1.4 > stay x1.2 > row x4 |
subject_id: person 1%07d; hadm_id: admission 2%07d; stay_id: stay 3%07d; gender: person F|M;
anchor_age: person 18..91; itemid: row 30*22%04d; valuenum: row 0.1..200.0
# ratings of films | person | person 100 > row x12, film 150 per row | userId: person %d;
movieId: film %d; rating: row 1|2|3|4|5; timestamp: row 960000000..1500000000
# taxpayers by year | person | person 260 > row x=3, year nth person, office 12 per person |
tax_year: row 2019..2019 +year; office: office F%03d; tax_number: person %03d/%03d/%05d;
filing: person~ single|joint; birth_year: person 1940..1998; children: person~ 0|1|2
# users who are clerks of an office | row | row 900, clerk 30 per row, office 6 per clerk |
user_id: clerk %05d; office: office O%02d; department: clerk A|B|C; citizen_age: row 18..90;
citizen_sex: row f|m; benefit: row rent|child|sick; amount: row 50..900
# agents par matricule | row | row 900, agent 25 per row, bureau 5 per agent |
matricule: agent %06d; bureau: bureau B%02d; âge: row 18..90; sexe: row F|H; commune: row 40*%05d;
prestation: row RSA|APL|AAH; montant: row 50..900
# members whose families share a number | person | member 200 > person x2 > row x3 |
member_id: member %09d; person_code: person #member; sex: person F|M; dob: person day 1940..2020;
claim: row %09d; paid: row 5.0..900.0; service: row day 2022..2023
# two registers of unequal size | person | register 3 > person x90 > row x3 |
register: register R%d; patient_no: person #register; sex: person F|M;
birth_year: person 1930..2015; visit: row day 2021..2022; icd: row 50*I%02d
# alumnos por centro | person | centro 8 > person x30 > row x4 | centro: centro C%02d;
nº expediente: person #centro; sexo: person H|M; año de nacimiento: person 2005..2012;
asignatura: row mates|lengua|inglés; nota: row 0.0..10.0
# PSID | person | family 150 > person x2.5 > row x=3, year nth person | ER30001: family %04d;
ER30002: person #family; YEAR: row 2015..2015 +year; SEX: person 1|2; AGE: person 1..80 +year;
EARN: row 0..9000
# patients who restart in each file | row | file 4 > row x150 | file: file F%d;
patient_id: row #file; age: row 18..95; sex: row f|m; bmi: row 17.0..40.0; died: row 0|1
# visits without a number | ? | person 350 > row x2.5, doctor 9 per row |
birth_date: person day 1930..2015; sex: person F|M; zip: person 60*%05d; doctor: doctor D%02d;
visited: row day 2021..2023; diagnosis: row 50*D%02d; cost: row 10..900
# a shop whose customer_id is one order's | person | person 350 > order x1.6 > row x1.8 |
order_id: order hash32; customer_id: order hash32; customer_unique_id: person hash32;
order_item_id: row #order; customer_zip_code_prefix: person 90*%05d; product_id: row 90*%05d
# eICU | person | person 220 > stay x1.5 > row x3 | patientunitstayid: stay %07d;
uniquepid: person 002-%05d; gender: person Female|Male; age: person 18..89;
hospitalid: person 20*%03d; labname: row 40*lab%02d; labresult: row 0.5..200.0
# inmates numbered at each stay | person | person 280 > stay x1.6 > row x2 | inmate_id: stay %07d;
state_id: person SID%07d; sex: person M|F; race: person B|W|H; dob: person day 1950..2003;
event: row move|visit|hearing; day: row day 2020..2022
# sellers and buyers | ? | seller 120 > row x7, buyer 250 per row | seller_id: seller %06d;
buyer_id: buyer %06d; item: row %08d; price: row 1.0..300.0; sold: row time 2022..2023;
category: row 12*C%02d
# customers who are firms | ? | customer 200 > row x6 | order_no: row %08d;
customer_no: customer %06d; company: customer 200*Firm %03d; industry: customer 12*I%02d;
employees: customer 5..900; ordered: row day 2022..2023
# respondents who are firms | - | firm 200 > row x4, year nth firm | respondent_id: firm %06d;
year: row 2018..2018 +year; nace: firm 40*%04d; legal_form: firm AG|GmbH|KG;
turnover: row 100..90000; employees: row 1..900
# patients of a veterinary clinic | ? | animal 250 > row x2.5, vet 6 per row |
patient_id: animal %06d; species: animal dog|cat|rabbit; breed: animal 30*Breed %02d;
sex: animal f|m|fs|mn; birth_date: animal day 2008..2022; owner_no: animal %05d
# mice of a laboratory | - | mouse 40 > session x5 > row x5 | subject_id: mouse M%04d;
species: mouse mouse|mouse; genotype: mouse wt|ko|het; sex: mouse F|M; age_weeks: mouse 8..30;
session: session S%05d; trial: row #session; licks: row 0..30
# tenants of a cloud | - | tenant 80 > row x15 | tenant_id: tenant t-%05d; region: tenant eu|us|ap;
plan: tenant free|pro; day: row day 2023..2023; cpu_h: row 1..900; errors: row 0..50
# members of parliament | person | person 150 > row x9 | vote_no: row 60*%05d; deputy: person name;
party: person A|B|C|D; constituency: person %03d; vote: row yes|no|abstain
# authors of papers | person | person 250 > row x3 | paper: row 400*P%05d; author_id: person A%06d;
country: person 20*C%02d; institute: person~ 60*I%02d; year: row 2000..2022; position: row 1..6;
cites: row 0..90
# pay of teachers | person | person 120 > row x=6, month nth person | teacher_id: person %05d;
sex: person F|M; birth_year: person 1958..1999; school: person~ 20*S%02d; month: row 1..1 +month;
hours: row 8..28; gross: row 2500..6500
# study numbers of participants | person | person 220 > row x3 | study_id: person %04d;
sex: person F|M; birth_year: person 1930..2005; visit_date: row day 2020..2022; score: row 0..90;
dose_mg: row 5|10|20
# trial whose numbers have a hyphen | person | person 120 > row x4 | subject_id: person 101-%04d;
sex: person F|M; age: person 18..80; visit: row day 2020..2022; sbp: row 95..180
# elever | person | person 150 > row x6, lärare 8 per row | personnummer: person 19%06d-%04d;
kön: person F|P; skola: person 4*Skola %d; ämne: row ma|sv|en; lärare: lärare family; betyg: row A|B
# keys that became decimals | person | person 200 > row x3 | customer_id: person 1%05d.0;
sex: person F|M; birth_year: person 1940..2005; sku: row 60*S%03d; amount: row 1.0..90.0
# patients with a file | person | person 220 > stay x1.6 > row x2.5 | patient_no: stay %06d;
file_no: person %07d; sex: person F|M; birth_year: person 1930..2005; drug: row 40*N%02d
# patients and their doctors | person | person 300 > row x3, doctor 40 per person |
patient_id: person %06d; doctor_id: doctor D%03d; sex: person F|M; birth_year: person 1930..2010;
visited: row day 2020..2022; cost: row 10..900
# patients and their doctors, no sex | person | person 300 > row x3, doctor 40 per person |
patient_id: person P%06d; doctor_id: doctor D%03d; city: person 30*City %02d;
drug: row 40*N%02d; dispensed: row day 2020..2022
# customers with a city | customer | customer 250 > row x4, shuffled | customer_id: customer C%06d;
city: customer 40*City %02d; postcode: customer 90*%05d; sku: row 60*S%03d; amount: row 1.0..90.0
# people in households | person | household 150 > person x2 > row x3 | hh_id: household %05d;
person_id: person %07d; sex: person F|M; yob: person 1930..2015; region: household 8*R%d;
wave_date: row day 2015..2020; income: row 0..6000
# orders of known customers | customer | customer 200 > order x2 > row x2, shuffled |
order_no: order %08d; customer_no: customer %06d; sex: customer f|m;
birth_date: customer day 1940..2004; item_no: row 50*%05d; price: row 1.0..90.0
# bands of age | row | row 800 | entry: row %06d; age_group: row 0-9|10-19|20-29|30-39|40-59|60-99;
sex: row f|m; income_band: row 0-999|1000-1999|2000-3999|4000-8000; smoker: row yes|no
# dates of visits | row | row 700 | patient_id: row %06d; visit_date: row day 2021..2021;
last_visit: row day 2020..2020; sex: row f|m; age: row 0..95; test: row 30*T%02d
# a shop with three clerks | customer | customer 200 > row x4, clerk 3 per row |
customer_id: customer C%05d; seller_id: clerk S%02d; sex: customer f|m;
birth_year: customer 1940..2004; amount: row 1.0..90.0
# receipts of three clerks | row | row 800, clerk 3 per row | receipt: row %07d;
seller_id: clerk S%02d; age: row 18..90; sex: row f|m; amount: row 1.0..90.0
# staff of several companies | person | person 200 > row x=6, month nth person |
employee_no: person %05d; company: person 8*Company %d; sex: person f|m;
birth_date: person day 1960..2002; month: row 1..1 +month; gross: row 2000..9000
# owners of pets | person | person 250 > row x3, vet 5 per row | client_no: person %06d;
species: row dog|cat|rabbit; breed: row 30*Breed %02d; sex: person f|m;
birth_year: person 1940..2003; paid: row 10..900
# members with a plan | person | person 300 > row x3 | member_no: person M%06d;
plan: person gold|silver|basic; sex: person f|m; dob: person day 1940..2015; claim: row %08d;
paid: row 5.0..900.0
# pupils of schools | person | school 20 > class x3 > person x9 > row x4 | school_id: school %04d;
class_id: class %05d; pupil_id: person %06d; sex: person f|m; birth_year: person 2008..2013;
subject: row Maths|Art|Music; mark: row 1..6
# respondents of a clustered panel | person | cluster 30 > person x8 > row x=3, wave nth person |
cluster: cluster %03d; stratum: cluster 4*S%d; respondent_id: person %06d; sex: person 1|2;
age: person 18..80 +wave; wave: row 1..1 +wave; vote: row a|b|c
# patients whose file is the family's | person | family 150 > person x2.5 > row x2.5 |
file_no: family F%05d; patient_id: person %06d; sex: person f|m; birth_date: person day 1930..2020;
visited: row day 2020..2022; icd: row 50*D%02d
# pressures of the blood | row | row 700 | entry: row %06d; blood_pressure: row 40*1%02d/80;
sex: row f|m; age: row 20..90; weight: row 45..120
# telephones | row | row 600 | entry: row %05d; extension: row 555-%04d; sex: row f|m;
birth_date: row day 1950..2000; room: row 50*R%03d
# stays with a barcode | person | person 250 > stay x1.6 > row x2.5 | patient_id: stay %06d;
barcode: person 40%08d; sex: person F|M; birth_date: person day 1930..2010; drug: row 40*N%02d
# stays in a study | person | person 250 > stay x1.6 > row x2.5 | patient_no: stay 7%06d;
study_id: person %04d; sex: person F|M; race: person A|B|W; age: person 20..90; dose: row 5|10|20
# stays with a tag | person | person 200 > stay x1.5 > row x3 | patient_id: stay %06d;
tag: person T-%06d; sex: person F|M; birth_year: person 1930..2010; drug: row 40*N%02d
# Kunden, die Firmen sind | ? | customer 200 > row x5 | Kundennummer: customer %06d;
Firma: customer Firma %04d; Ort: customer 40*Ort %02d; Bestelldatum: row day 2022..2023;
Betrag: row 10..9000
# participants that are teams | ? | team 60 > row x8 | participant_id: team %04d;
team: team Team %02d; league: team A|B|C; points: row 0..90; played: row day 2022..2023
# borrowers that are firms | ? | firm 200 > row x3 | borrower_id: firm %07d;
naics: firm 40*%06d; state: firm 20*S%02d; loan_amount: row 1000..90000;
approved: row day 2010..2020
# insured cars | ? | car 250 > row x3 | insured_no: car %07d; make: car 12*Make %02d;
fuel: car diesel|petrol; power_kw: car 40..200; claim_date: row day 2018..2022; paid: row 10..9000
# consumers that are meters | ? | meter 80 > row x12 | consumer_id: meter %08d;
tariff: meter A|B|C; phase: meter 1|3; area: meter 9*A%d;
read_on: row day 2022..2023; kwh: row 0..90
# lenders and borrowers | ? | lender 150 > row x6, borrower 200 per row | lender_id: lender %06d;
borrower_id: borrower %06d; loan: row %08d; rate: row 1.0..20.0; state: borrower 20*S%02d
"""

STANZAS = {
    stanza.split(" | ")[0]: stanza for stanza in TABLES.strip().removeprefix("# ").split("\n# ")
}
"""The description of each table, by name."""


@dataclass(frozen=True)
class WorldTable:
    """A table as text, its truth, and which person each row is about, if anybody can tell."""

    truth: str
    frame: pl.DataFrame
    people: np.ndarray | None  # int (rows,)

    def nameless(self) -> WorldTable:
        """The same table with its columns called c1, c2, ..."""
        names = {name: f"c{i}" for i, name in enumerate(self.frame.columns, 1)}
        return WorldTable(self.truth, self.frame.rename(names), self.people)

    def is_person(self, columns: list[str]) -> bool:
        """Whether rows agree on these columns exactly if they are about one person."""
        if self.people is None:
            return False
        keys = self.frame.select(columns).with_columns(pl.Series("the person", self.people))
        people = keys["the person"].n_unique()
        return keys.n_unique() == people == keys.select(columns).n_unique()


class Draw:
    """What the rows of a table are made of, and the cells drawn for them."""

    def __init__(self, made_of: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.cells: dict[str, np.ndarray] = {}
        chain, *others = made_of.split(", ")
        first, *steps = chain.split(" > ")
        unit, count = first.split()
        self.units = {unit: np.arange(int(count))}  # the number of each row's unit
        for step in steps:
            parents = len(self.units[unit])
            unit, mean = step.split(" x")
            more = int(mean[1:]) if mean[0] == "=" else self.rng.geometric(1 / float(mean), parents)
            self.units = {name: np.repeat(index, more) for name, index in self.units.items()}
            self.units[unit] = np.arange(len(next(iter(self.units.values()))))
        self.rows = len(self.units["row"])
        if "shuffled" in others:
            order = self.rng.permutation(self.rows)
            self.units = {name: index[order] for name, index in self.units.items()}
            self.units["row"] = np.arange(self.rows)
        for words in (other.split() for other in others if other != "shuffled"):
            if words[1] == "nth":
                self.units[words[0]] = self.number("row", words[2])
            else:
                index = self.units[words[3]]
                self.units[words[0]] = self.some(int(words[1]), index.max() + 1)[index]

    def some(self, count: int, size: int) -> np.ndarray:
        """`size` of the numbers below `count`, of which the small are the commonest."""
        weights = 1 / np.arange(3, count + 3)
        return self.rng.choice(count, size, p=weights / weights.sum())

    def number(self, unit: str, within: str) -> np.ndarray:
        """Each row's unit as a number within a bigger unit, from 0 in order of appearance."""
        seen: dict[int, dict[int, int]] = {}
        pairs = zip(self.units[within].tolist(), self.units[unit].tolist(), strict=True)
        return np.array([(own := seen.setdefault(w, {})).setdefault(u, len(own)) for w, u in pairs])

    def column(self, unit: str, kind: str) -> np.ndarray:
        """The cells of a column: every unit's own value."""
        kind, _, grows = kind.partition(" +")
        if kind[0] == "#":
            return (self.number(unit, kind[1:]) + 1).astype(str)
        if kind[0] == "=":
            others = pl.DataFrame(self.cells).iter_rows(named=True)
            return np.array([kind[1:].format(**other) for other in others])
        index = self.units[unit.rstrip("~")]
        cells = self.values(kind, index.max() + 1, ascending=unit == "row")[index]
        if unit[-1] == "~":
            other = self.rng.permutation(cells)
            cells = np.where(self.rng.random(self.rows) < 0.04, other, cells)
        if grows:
            return (cells.astype(int) + self.units[grows]).astype(str)
        return cells

    def values(self, kind: str, count: int, ascending: bool = False) -> np.ndarray:
        """A value of this kind for each of `count` units."""
        rng = self.rng
        if match := re.fullmatch(r"(\d+)\*(.+)", kind):
            return self.values(match[2], int(match[1]))[self.some(int(match[1]), count)]
        if "|" in kind:
            return rng.choice(kind.split("|"), count)
        if match := re.fullmatch(r"(day|time) (\d+)\.\.(\d+)", kind):
            start, end = np.datetime64(match[2], "s"), np.datetime64(str(int(match[3]) + 1), "s")
            drawn = start + rng.integers(0, (end - start).astype(int), count)
            drawn = np.sort(drawn) if ascending else drawn
            return drawn.astype("M8[D]" if match[1] == "day" else "M8[s]").astype(str)
        if ".." in kind:
            low, high = kind.split("..")
            if "." in low:
                return np.round(rng.uniform(float(low), float(high), count), 1).astype(str)
            return rng.integers(int(low), int(high) + 1, count).astype(str)
        if kind.startswith("hash"):
            return np.array([rng.bytes(20).hex()[: int(kind[4:])] for _ in range(count)])
        if kind in ("name", "family"):
            ends = [a + b for a in ("", "li", "ma") for b in "ner ke dt mann ski ov".split()]
            choice = [a + b for a in "Al Ber Cas Dor El Fen Gar Hol Iv Jan".split() for b in ends]
            if kind == "name":
                given = "Ada Ben Cleo Dan Eva Finn Gus Hana Ida Jon Kim Leo Mia Olga".split()
                choice = [f"{first} {last}" for last in choice for first in given]
            return rng.choice(choice, count, replace=count > len(choice))
        numbers = rng.choice(9 * count + 9, count, replace=False) + 1
        numbers = np.sort(numbers) if ascending else numbers
        return np.array([kind % ((number,) * kind.count("%")) for number in numbers.tolist()])


def world_table(name: str) -> WorldTable:
    """The table of this name, always the same."""
    _, truth, made_of, columns = re.sub(r"\s+", " ", STANZAS[name]).split(" | ")
    draw = Draw(made_of, crc32(name.encode()))
    for column in columns.split("; "):
        heading, described = column.split(": ", 1)
        draw.cells[heading] = draw.column(*described.split(" ", 1))
    return WorldTable(truth, pl.DataFrame(draw.cells), draw.units.get(truth))
