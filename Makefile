# `make run` shows the main result, `make test` runs everything CI checks. Both install what they
# need on a Debian-like machine, as root or with sudo, and do nothing twice. `make unit` and `make
# tier` make the virtual environment alone.
VENV := .venv
COHORT := $(VENV)/bin/cohort
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

PACKAGES := bc binutils bison ccache e2fsprogs flex gcc git libc6-dev libelf-dev libsqlite3-dev libssl-dev \
	patch perl python3 python3-venv qemu-system-x86 shellcheck util-linux xz-utils
# What only the tests need: a shell for small guests, kernels for arm64, a machine to boot them, a
# second opinion on C, and a browser for the report.
TEST_PACKAGES := busybox-static chromium-headless-shell device-tree-compiler gcc-aarch64-linux-gnu \
	libc6-dev-arm64-cross makedumpfile qemu-system-arm sparse
# The release the patches are made for; a later one of the series will do if it is gone.
SOURCE := linux-source-6.12
SOURCE_VERSION := 6.12.117-1~deb12u1

# What a phone of arm64 needs besides (make run ARCH=arm64).
ARM64_PACKAGES := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm

SUITES := selftests-mm selftests stress-ng-vm fio trinity adversaries changes pieces integrity userland
POLICIES := none,region-alone,region,cpb,pcpa,vnode-untrusted
# On one CPU there is no room for two nodes, and the machine of `changes` has none for a large area.
POLICIES_adversaries := none,region-alone,region,rightsize,cpb,pcpa,pcpa-kept
POLICIES_changes := none,region-alone,region,cpb,pcpa64
POLICIES_pieces := cma128,pcpa64,pcpa-kept64
# Suites on another machine, each with its options. They run before the suite itself, and what their
# guests said goes out of its way. A checked kernel wants more of the virtual node that it lives in
# than `vnode` has.
ALSO := adversaries+2cpus stress-ng-vm+8cpus+debug stress-ng-vm+2cpus+debug
POLICIES_adversaries+2cpus := none,vnode,vnode-lend
POLICIES_stress-ng-vm+8cpus+debug := none,region-alone,region,cpb,pcpa
POLICIES_stress-ng-vm+2cpus+debug := none,region-alone,region,cpb,pcpa
OPTIONS_adversaries+2cpus := --cpus 2
OPTIONS_stress-ng-vm+8cpus+debug := --debug --cpus 8 --memory 4096
OPTIONS_stress-ng-vm+2cpus+debug := --debug --cpus 2
SUITE_PACKAGES := debootstrap libcap-dev libfuse-dev libnuma-dev liburing-dev rsync

LAUNCHES := 200
SEED := 1
ARCH := x86_64
OUT := $(or $(COHORT_OUT),out)
REPORT := $(OUT)/report.html
# What the lab and its tests make there.
MADE := .gone* builds cache gw* guest kernel kunit last-*.json programs report.html runs storage studies suites tests tune

# `make repeat`: what pytest is told, how often it runs, and the busy loops beside it.
TESTS :=
TIMES := 10
BUSY := 4
# `make tier`: which, and the checkout that keeps what it took.
TIER := test
INTO := .

.PHONY: run test night suites tier repeat unit packages venv clean
.DEFAULT_GOAL := run

run: PACKAGES += $(if $(filter arm64,$(ARCH)),$(ARM64_PACKAGES))
run: packages venv
	$(COHORT) compare none region --workload phone-2g --arch $(ARCH) \
		--launches $(LAUNCHES) --seed $(SEED) --report $(REPORT)

test: PACKAGES += $(TEST_PACKAGES)
test: packages venv
	$(VENV)/bin/pytest -v --durations=40 -n auto --maxprocesses 4 --dist worksteal -m "not night"

# What takes too long for each change: `make test` and this are all tests.
night: PACKAGES += $(TEST_PACKAGES)
night: packages venv
	$(VENV)/bin/pytest -v --durations=40 -n auto --maxprocesses 4 --dist worksteal -m night

# All of it, and what others wrote under several policies: a night on a machine of its own. One that
# fails or differs does not keep the next from running; the end tells which did.
suites: PACKAGES += $(TEST_PACKAGES) $(SUITE_PACKAGES)
suites: packages venv
	@failed=; $(again) night || failed=night; \
	$(foreach run,$(ALSO), rm -rf $(call runs,$(run)) $(call runs,$(call name,$(run))); \
		$(call suite,$(run)) || failed="$$failed $(run)"; \
		mv $(call runs,$(call name,$(run))) $(call runs,$(run));) \
	$(foreach run,$(SUITES), $(call suite,$(run)) || failed="$$failed $(run)";) \
	$(COHORT) scale || failed="$$failed scale"; \
	[ -z "$$failed" ] || { echo "failed, or differ: $$failed" >&2; exit 1; }

# Not by its own name, which would have `make -n suites` run the line that it is in.
again = $(MAKE)
# Of a run of a suite: the suite, the command, and where its guests' words are.
name = $(firstword $(subst +, ,$(1)))
suite = $(COHORT) suite $(call name,$(1)) --junit $(OUT)/suites/$(1).xml \
	--policies $(or $(POLICIES_$(1)),$(POLICIES)) $(OPTIONS_$(1))
runs = $(OUT)/suites/runs/$(1)

# A tier as it is, `make test`, `night` or `suites`, and what it took: docs/results/suites.md.
tier: venv
	$(VENV)/bin/python tests/tier.py $(TIER) --into $(INTO)

# A test that fails now and then is a defect: make repeat TESTS="tests/unit/test_x.py -k name"
repeat: PACKAGES += $(TEST_PACKAGES)
repeat: packages venv
	$(VENV)/bin/python tests/repeat.py --times $(TIMES) --busy $(BUSY) $(TESTS)

# Some minutes: no kernel, no guest.
unit: venv
	$(VENV)/bin/pytest -m "not kernel and not integration"

packages:
	@installed() { dpkg-query -W -f '$${Status}\n' "$$@" 2>/dev/null | grep -c '^install ok'; }; \
	if [ "$$(installed $(PACKAGES) $(SOURCE))" != $(words $(PACKAGES) $(SOURCE)) ]; then \
		set -ex; export DEBIAN_FRONTEND=noninteractive; \
		$(SUDO) apt-get update; \
		$(SUDO) apt-get install -y --no-install-recommends $(PACKAGES); \
		$(SUDO) apt-get install -y --no-install-recommends $(SOURCE)=$(SOURCE_VERSION) || \
			$(SUDO) apt-get install -y --no-install-recommends $(SOURCE); \
	fi

venv: $(VENV)/installed

# python3 -m venv is of a package: those that install packages do it first, also under make -j.
INSTALLING := run test night suites repeat packages
AFTER := $(if $(filter $(INSTALLING),$(or $(MAKECMDGOALS),$(.DEFAULT_GOAL))),packages)

$(VENV)/installed: requirements.txt requirements-dev.txt pyproject.toml | $(AFTER)
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

# A directory that COHORT_OUT names may have more in it than what the lab makes.
clean:
	rm -rf $(if $(filter out,$(OUT)),out,$(MADE:%=$(OUT)/%))
