# `make run` shows the result, `make test` runs everything CI checks.
VENV := .venv
COHORT := $(VENV)/bin/cohort

.PHONY: run test venv clean
venv: $(VENV)/installed

$(VENV)/installed: requirements.txt requirements-dev.txt pyproject.toml
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

clean:
	rm -rf out
