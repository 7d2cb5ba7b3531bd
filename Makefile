# The commands of the course. `make` alone lists them; course.py holds what they do.

# The Python that makes .venv: make course PYTHON=python3.12
PYTHON ?= python3
# Where pip looks for torch besides its usual registry, as https://download.pytorch.org/whl/cpu (see README.md).
TORCH_INDEX ?=
# The folder whose submitted/ is graded: the sample class, or your own, as CLASS=. for this folder.
CLASS ?= _build/sample_class
# make grade SANDBOX=no runs the students' code without a cage, with your rights.
SANDBOX ?= yes
# How many pairs, mistakes and mutants of each exercise make accuracy sends through nbgrader; 0 is all of them.
PART ?= 0
# Where make serve listens.
PORT ?= 8000
# More words for JupyterLab or pytest: make lab ARGS=--no-browser
ARGS ?=

SET_UP := .venv/set-up-done
COURSE := .venv/bin/python course.py

.PHONY: help course book serve lab together formgrader release grade check-sandbox accuracy faults test clean
.DEFAULT_GOAL := help

help: ## list the commands
	@awk -F ' *[:]?[^:]*## ' '/^[a-z-]+:.*## /{split($$0, name, ":"); printf "make %-13s %s\n", name[1], $$2}' Makefile

course: $(SET_UP) ## set everything up, release the exercises, build the book, grade the sample class
	@$(COURSE) course

book: $(SET_UP) ## build the book into _build/html
	@$(COURSE) book

serve: book ## show the built book on this machine (PORT=8000)
	@$(COURSE) serve $(PORT)

lab: $(SET_UP) ## work on the exercises in JupyterLab, in work/
	@$(COURSE) lab $(ARGS)

together: $(SET_UP) ## run what you wrote in work/ as one encoder, beside the reference's
	@$(COURSE) together

formgrader: $(SET_UP) release ## open JupyterLab on the whole course, for formgrader
	@$(COURSE) formgrader $(ARGS)

release: $(SET_UP) ## generate exercises/ from solutions/
	@$(COURSE) release

grade: $(SET_UP) ## grade the sample class; with CLASS=. the folder submitted/ here
	@$(COURSE) grade $(CLASS) $(if $(filter no,$(SANDBOX)),--no-sandbox)

check-sandbox: $(SET_UP) ## say what the sandbox for students' code enforces on this machine
	@$(COURSE) check-sandbox

accuracy: $(SET_UP) ## judge and grade every answer whose worth is known, for the page on the grader
	@$(COURSE) accuracy $(PART)

faults: $(SET_UP) ## grade submissions in which everything goes wrong, here and with nbgrader as it comes
	@$(COURSE) faults

test: course ## run everything that .ci/run runs
	.venv/bin/ruff check .
	OMP_NUM_THREADS=1 PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m pytest -n auto $(ARGS)

clean: ## remove what was built; .venv, work/ and your gradebook stay
	rm -rf _build .pytest_cache .ruff_cache .hypothesis

$(SET_UP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) here: install Python 3.11 or newer, or name one with make PYTHON=/path/to/python3."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "The course needs Python 3.11 or newer and $(PYTHON) is $$($(PYTHON) --version 2>&1): install a newer one, or name it with make PYTHON=/path/to/python3."; exit 1; }
	@$(PYTHON) course.py set-up $(TORCH_INDEX)
