# `make run` shows the main result, `make test` runs everything CI checks. Both install what they
# need on a Debian-like machine, as root or with sudo, and do nothing twice.
VENV := .venv
COHORT := $(VENV)/bin/cohort
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

PACKAGES := bc binutils bison ccache e2fsprogs flex gcc git libc6-dev libelf-dev libsqlite3-dev libssl-dev \
	patch perl python3 python3-venv qemu-system-x86 shellcheck util-linux xz-utils
# What only the tests need: a shell for small guests, kernels for arm64, a machine to boot them, a
# second opinion on C, and a browser for the report.
TEST_PACKAGES := busybox-static chromium-headless-shell device-tree-compiler gcc-aarch64-linux-gnu \
	libc6-dev-arm64-cross qemu-system-arm sparse
# The release the patches are made for; a later one of the series will do if it is gone.
SOURCE := linux-source-6.12
SOURCE_VERSION := 6.12.117-1~deb12u1

# What a phone of arm64 needs besides (make run ARCH=arm64).
ARM64_PACKAGES := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm

SUITES := selftests-mm selftests stress-ng-vm fio trinity adversaries changes userland
POLICIES := none,region,cpb,pcpa,vnode
# On one CPU there is no room for two nodes.
POLICIES_adversaries := none,region,cpb,pcpa
POLICIES_changes := none,region,cpb,pcpa
SUITE_PACKAGES := debootstrap libcap-dev libfuse-dev libnuma-dev liburing-dev rsync

LAUNCHES := 200
SEED := 1
ARCH := x86_64
REPORT := out/report.html

.PHONY: run test night suites unit packages venv clean
.DEFAULT_GOAL := run

run: PACKAGES += $(if $(filter arm64,$(ARCH)),$(ARM64_PACKAGES))
run: packages venv
	$(COHORT) compare none region --workload phone-2g --arch $(ARCH) \
		--launches $(LAUNCHES) --seed $(SEED) --report $(REPORT)

test: PACKAGES += $(TEST_PACKAGES)
test: packages venv
	$(VENV)/bin/pytest -v --durations=15 -n auto --maxprocesses 4 --dist worksteal -m "not night"

# What takes too long for each change: `make test` and this are all tests.
night: PACKAGES += $(TEST_PACKAGES)
night: packages venv
	$(VENV)/bin/pytest -v --durations=15 -n auto --maxprocesses 4 --dist worksteal -m night

# All of it, and what others wrote under several policies: a night on a machine of its own. One that
# fails or differs does not keep the next from running; the end tells which did.
suites: PACKAGES += $(TEST_PACKAGES) $(SUITE_PACKAGES)
suites: packages venv
	@failed=; $(MAKE) night || failed=night; \
	$(foreach suite,$(SUITES), $(COHORT) suite $(suite) --junit out/suites/$(suite).xml \
		--policies $(or $(POLICIES_$(suite)),$(POLICIES)) || failed="$$failed $(suite)";) \
	[ -z "$$failed" ] || { echo "failed, or differ: $$failed" >&2; exit 1; }

# Seconds, not minutes: no kernel, no guest.
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

$(VENV)/installed: requirements.txt requirements-dev.txt pyproject.toml | packages
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

clean:
	rm -rf out
