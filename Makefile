# Every target does its own set-up in .venv; nothing has to be installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
PYTEST_WORKERS ?= 2
# The tests start many processes, which share compiled modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: wheels lock demo test test-slow soak lint docs pictures bench browser clean help

help:
	@echo "make demo       watch surepick choose between six routes"
	@echo "make test       lint, types and the whole test suite"
	@echo "make pictures   draw the pictures of the README again"
	@echo "make docs       build the site into site/; warnings are errors, examples are run"
	@echo "make bench      the benchmarks with small samples, about ten minutes"
	@echo "make lint       ruff and strict mypy"
	@echo "make test-slow  the long statistical studies"
	@echo "make soak       the simulations of make test again, and odd inputs, by the thousand; HISTORIES=20000 INPUTS=5000"
	@echo "make lock       write the tested versions and their hashes again, requirements/*.txt"
	@echo "make wheels     does every dependency have wheels for every supported Python? (a dry run of pip)"

lock: $(READY)
	$(BIN)/python tools/lock.py

$(INSTALLED): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("surepick needs Python 3.11 or newer, got %d.%d; set PYTHON=" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[problems]'
	touch $(INSTALLED)

# The versions that were tested together, by their hashes; where they do not fit, the newest ones.
$(READY): $(INSTALLED) requirements/test.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/test.txt \
	|| echo "requirements/test.txt does not fit this machine: installing the newest versions instead"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $(READY)

demo: $(INSTALLED)
	$(BIN)/surepick demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python tools/site/build.py
	@echo "open site/index.html"

wheels: $(READY)
	$(BIN)/python tools/wheels.py

pictures: $(READY)
	$(BIN)/python docs/pictures.py

# The tests of the dashboard use a real browser; without one they are skipped, and say so.
APT_CHROMIUM := apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$name >/dev/null && exit 0; done; \
	if test "$$(id -u)" = 0; then run="sh -c"; elif sudo -n true 2>/dev/null; then run="sudo -n sh -c"; fi; \
	if test -n "$$run" && command -v apt-get >/dev/null && echo "installing chromium for the browser tests" && $$run '$(APT_CHROMIUM)' >/dev/null; then :; \
	else echo "there is no chromium and it could not be installed: the browser tests will be skipped"; fi

test: lint browser
	$(BIN)/pytest -n $(PYTEST_WORKERS) --dist worksteal

test-slow: $(READY)
	$(BIN)/pytest -n $(PYTEST_WORKERS) -m slow

HISTORIES ?= 20000
FIRST ?= 100000
INPUTS ?= 5000
soak: $(READY)
	$(BIN)/python tests/support/session_histories.py --histories $(HISTORIES) --first $(FIRST)
	$(BIN)/python tests/support/fuzzing.py --inputs $(INPUTS) --seed $(FIRST)
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest -q $$(grep -rl '^from hypothesis' tests --include='test_*.py')

bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group bench
	set -e; export OMP_NUM_THREADS=1; for one in "design --repeats 1 --largest 1000" hops "matrix --runs 2 --only list" \
	  "paper_errors factor-4 sum counts argmax reversed best-arm plus-d" "soundness --runs 10 --only polytopes" \
	  "limited --runs 2" "misuse --runs 5" "rounds --rounds 500 --repeats 1" timing "unknown_noise --tapes 1" "kill --kills 10" "store --sizes 100 --seconds 1" \
	  "web --viewers 20 --workers 4 --seconds 4 --measurements 5000"; do \
	  set -- $$one; name=$$1; shift; echo "== $$name"; timeout 600 $(BIN)/python benchmarks/$$name.py "$$@"; done

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache
