#!/bin/sh
# Publishes a table of PostgreSQL into another schema, audited before the commit.
set -eu

# what is there in a clinic already: a schema of its own with a table of patients
shoal sample patients -n 1000 --seed 7 -o patients.csv --quiet
psql --quiet --set ON_ERROR_STOP=1 <<'SQL'
CREATE SCHEMA clinic;
CREATE TABLE clinic.patients (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text, patient text, age int, sex text, zip text, education text, disease text, charge int,
    ward text
);
\copy clinic.patients (name, patient, age, sex, zip, education, disease, charge, ward) FROM patients.csv CSV HEADER
SQL

# once: a schema for releases, and somebody who may read them and nothing else
psql --quiet --set ON_ERROR_STOP=1 <<'SQL'
CREATE SCHEMA released;
CREATE ROLE researcher LOGIN;
GRANT USAGE ON SCHEMA released TO researcher;
ALTER DEFAULT PRIVILEGES IN SCHEMA released GRANT SELECT ON TABLES TO researcher;
SQL

# the key is in the table, not in the release
echo 'other: drop' >> patients.policy.yaml

# every time: from one schema into the other, committed only if every promise holds
shoal publish 'postgresql:///?table=patients&schema=clinic' -p patients.policy.yaml \
    -o 'postgresql:///?table=patients&schema=released'

# as anybody who may read it: the rows are those that were certified, and the promises hold
PGUSER=researcher shoal verify 'postgresql:///?table=patients&schema=released' -p patients.policy.yaml
if PGUSER=researcher psql --quiet --command 'SELECT FROM clinic.patients' 2> /dev/null; then
    echo 'the original can be read by others'; exit 1
fi

# a table that grows: each increment adds a release to one table; the ledger's private part stays here
for month in 1 2; do
    shoal sample wearables -n 300 --seed $month -o month$month.csv --quiet
    shoal republish month$month.csv -p month1.policy.yaml --ledger wearers \
        -o 'postgresql:///?table=wearers&schema=released'
done

# as anybody who may read it: the newest table, and the chain of all releases
PGUSER=researcher psql --quiet --set ON_ERROR_STOP=1 --command "SELECT count(*) FROM released.wearers
    WHERE shoal_release >= (SELECT since FROM released.shoal_releases
        WHERE name = 'wearers' ORDER BY release DESC LIMIT 1)"
PGUSER=researcher shoal ledger verify 'postgresql:///?table=wearers&schema=released'
