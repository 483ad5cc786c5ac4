# Every target sets up what it needs in .venv (bench, mutants, wheel: .venv-bench, .venv-mutants, .venv-build), works twice in a row, and offline after the first time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench/bin
MUTANTS := .venv-mutants/bin
BUILD := .venv-build
READY := $(VENV)/.ready
# examples of a property: fewer than Hypothesis's hundred, so that nobody waits long
export SHOAL_EXAMPLES ?= 10
# a file system in memory with 4 GB of room that runs programs, if there is one
IN_MEMORY = $(shell grep -q '^[^ ]* /dev/shm [^ ]* [^ ]*noexec' /proc/mounts 2>/dev/null || \
	df -k --output=avail /dev/shm 2>/dev/null | awk 'NR > 1 && $$1 > 4000000 { print "/dev/shm" }')
# one more test process than cores: some tests wait for other processes
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count() or 2, 8) + 1)')
# streams and ledgers wait for the disk at every commit, unless their files are in memory
PYTEST = $(if $(IN_MEMORY),TMPDIR=$(IN_MEMORY)) $(BIN)/python -m pytest -n $(WORKERS)
export SHOAL_DATA ?= $(abspath ../shared/data)

.DEFAULT_GOAL := help
.PHONY: help browser demo test test-all test-services check bench soak soak-page fuzz mutants reproduce-quick docs man catalogue pictures wheel services postgresql kafka spark r clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 16

$(READY): pyproject.toml papers/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "shoal needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) (once, about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]' -e ./papers
	@# pip itself compiles on one core, and libraries' own tests, too
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib || true
	@touch $@

demo: $(READY) ## publish the bundled sample, audit it, and draw the report
	@mkdir -p demo
	@$(BIN)/shoal sample patients -n 1000 --seed 7 -o demo/patients.csv --replace -q
	$(BIN)/shoal publish demo/patients.csv -p demo/patients.policy.yaml -o demo/published.csv --replace --report demo/report.html
	@echo; echo "before:"; head -n 4 demo/patients.csv; echo "after:"; head -n 4 demo/published.csv
	@echo; echo "the same for a stream:"
	@$(BIN)/shoal sample purchases -n 5000 --seed 7 -o demo/purchases.csv --replace -q
	@rm -rf demo/stream demo/stream.csv
	$(BIN)/shoal stream demo/purchases.csv -p demo/purchases.policy.yaml -o demo/stream.csv --checkpoint demo/stream --report demo/stream.html
	@echo "before:"; head -n 3 demo/purchases.csv; echo "after:"; head -n 3 demo/stream.csv
	@echo; echo "the same for a table that grows, in two releases:"
	@rm -rf demo/wearers demo/wearers.private
	@for i in 1 2; do $(BIN)/shoal sample wearables -n 1500 --seed $$i -o demo/wearables.csv --replace -q && \
		$(BIN)/shoal republish demo/wearables.csv -p demo/wearables.policy.yaml --ledger demo/wearers; done
	$(BIN)/shoal audit --ledger demo/wearers --report demo/history.html
	@echo; echo "reports: demo/report.html demo/stream.html demo/history.html"

# all test processes share the bytecode that one compiles, even if the environment forbids writing it
test: export PYTHONDONTWRITEBYTECODE :=
test: $(READY) ## all tests but the long ones
	@# compiles every loop and the tests themselves once: else each worker would
	@$(BIN)/shoal warmup --all --verb publish -q & publishing=$$!; \
	{ $(BIN)/python -m pytest --collect-only -qq >/dev/null || true; } && \
	$(BIN)/shoal warmup --all --verb stream --verb republish --verb fuse -q && wait $$publishing
	$(PYTEST) --dist worksteal --durations 20 $(CHOSEN)

# what a target sets for itself holds for the targets that it needs, too
test-all: export SHOAL_LONG := 1
test-all: export SHOAL_EXAMPLES := 100
test-all: CHOSEN := -m ''
test-all: test ## every test, with every choice, every kill and every example: some hours

test-services: $(READY) ## what `make test` leaves out of the tests of servers, killed processes and browsers
	@# a file's tests share their servers
	$(PYTEST) --dist loadfile --durations 20 -m long tests/services tests/web tests/browser

browser: ## Chromium, which the tests of shoal ui look at the page with
	@if command -v chromium chromium-browser google-chrome >/dev/null; then echo "Chromium is there"; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && \
		apt-get install -y -q --no-install-recommends chromium fonts-liberation; \
	else echo "install Debian's package 'chromium' as root, or Chromium by other means; without it the browser tests are skipped"; fi

check: $(READY) ## lint, format, types
	$(BIN)/ruff check src tests benchmarks papers docs hatch_build.py
	$(BIN)/ruff format --check src tests benchmarks papers docs hatch_build.py
	$(BIN)/mypy

bench: ## the figures that the docs claim, side by side with a floor or a peer
	@# an environment of its own, with what a user installs: Numba starts slower where the tests' SciPy is there, too
	@test -x $(BENCH)/python || $(PYTHON) -m venv .venv-bench
	$(BENCH)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fuse,postgres,web]' -e ./papers
	@tests/services/install-spark $(BENCH)/python || echo "Spark's benchmark will fail, and the others go on"
	$(BENCH)/python benchmarks/run.py

soak: export PYTHONPATH := src:tests
soak: $(READY) ## kill, damage and lie to streams, ledgers, fusions and runs past memory: MINUTES=10 SEED=3, or TRIALS=500 ROOM=kills
	$(BIN)/python -m soak --minutes $(or $(MINUTES),5) --seed $(or $(SEED),1) $(if $(TRIALS),--trials $(TRIALS)) $(if $(ROOM),--only $(ROOM))

mutants: ## changes in the auditor's code that no test notices: all of them (hours), or SAMPLE=100 of each part
	@test -x $(MUTANTS)/mutmut || $(PYTHON) -m venv .venv-mutants
	$(MUTANTS)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e ./papers mutmut
	$(MUTANTS)/python benchmarks/mutants.py $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

soak-page: $(READY) ## leave a stream's page open for HOURS=24; watch its memory and the server's (needs Chromium)
	SHOAL_HOURS=$(or $(HOURS),1) $(BIN)/python -m pytest -q -m "" tests/web/browser/test_watching.py

fuzz: export POLARS_MAX_THREADS ?= 1
fuzz: $(READY) ## random releases against an independent checker: N=20000 CORES=2 [SEED=...], CASE=folder to run one again, or HOSTILE=20000 damaged files and random words
	cd tests && ../$(BIN)/python -m $(if $(HOSTILE),fuzz.hostile --count $(HOSTILE) $(if $(SEED),--seed $(SEED)),fuzz $(if $(CASE),$(abspath $(CASE)),$(if $(SEED),--seed $(SEED)) \
		--tables $(or $(N),1000) --share --cores $(or $(CORES),1) --failures $(abspath fuzz-failures)))

services: postgresql kafka spark ## servers for the tests that want one: all of the next three

postgresql: ## the PostgreSQL server of services alone (on Debian, as root)
	@tests/services/install-postgresql

kafka: ## the Kafka broker of services alone (needs Maven and Java 17)
	@tests/services/install-kafka

spark: $(READY) ## PySpark for the tests of --engine spark alone, 0.5 GB (needs Java 17)
	@tests/services/install-spark $(BIN)/python

r: $(READY) ## the tests of the R package in r/shoal (on Debian as root, with R and testthat, else skipped)
	@if ! command -v Rscript >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then apt-get update -q && \
		apt-get install -y -q --no-install-recommends r-base-core r-cran-testthat r-cran-jsonlite; fi
	$(BIN)/python -m pytest -q -rs -m '' tests/services/test_r.py

reproduce-quick: $(READY) ## every paper's experiments in their small setting, on invented data: ten minutes at most
	$(BIN)/shoal reproduce all --quick --fresh --out reproduced-quick

docs: $(READY) ## the documentation as web pages in docs/_build
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/sphinx-build -q -W -b html docs docs/_build

man: $(READY) ## the manual page share/man/man1/shoal.1, from the help texts
	$(BIN)/python docs/_ext/manual_page.py

catalogue: $(READY) ## the catalogue of messages for translators, src/shoal/locale/shoal.pot
	$(BIN)/python docs/_ext/catalogue.py

pictures: $(READY) ## the pictures of shoal ui in docs/images, from the sample (needs Chromium)
	$(BIN)/python docs/_ext/page_pictures.py
	$(BIN)/python docs/_ext/tutorial_pictures.py

wheel: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1580601600)
$(BUILD)/.ready: build-requirements.txt
	@test -x $(BUILD)/bin/python || $(PYTHON) -m venv $(BUILD)
	$(BUILD)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r $<
	@touch $@

wheel: $(BUILD)/.ready ## both wheels and source archives in dist/, built twice to see that they are the same
	@rm -rf dist build/again
	@for into in dist build/again; do for project in . papers; do \
		(cd $$project && $(abspath $(BUILD))/bin/python -m hatchling build -d $(CURDIR)/$$into) || exit 1; \
	done; done
	@for file in dist/*; do cmp $$file build/again/$${file#dist/} || exit 1; done
	@cd dist && $(abspath $(BUILD))/bin/python -c "import hashlib, pathlib; \
		[print(hashlib.sha256(p.read_bytes()).hexdigest(), p, sep='  ') for p in sorted(pathlib.Path().iterdir())]"

clean: ## remove what the targets made
	rm -rf $(VENV) .venv-bench .venv-mutants $(BUILD) mutants fuzz-failures reproduced-quick .services demo build dist docs/_build .pytest_cache .mypy_cache .ruff_cache
