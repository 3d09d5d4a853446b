# Everything needs only python3 with venv, cargo, cc and make; all that is made stays in this folder.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
TARGET := $(or $(CARGO_TARGET_DIR),target)
BIN := $(CURDIR)/$(VENV)/bin
CARGO_FLAGS := --release --locked --workspace
# All tests except documentation tests, which do not exist (crates/tools/spinkit/tests/doc_comments.rs).
TESTS := --lib --bins --tests --no-fail-fast
# A suite that hangs ends after 20 minutes, and its output names the test that was running.
LIMITED := --config "target.'cfg(unix)'.runner = ['timeout', '--foreground', '--kill-after=10', '1200']"
# Commands of the virtual environment come first, for tests that call spincc or zig.
export PATH := $(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Set apart by conda and the like; the tools of .venv must see only .venv.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
# With CI=true, spinrun fails if a handler fails: many tests have such handlers.
unexport CI

C_FILES = $(shell find sdk examples experiments tests crates rtl -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp')

.PHONY: help build cargo demo docs test test-checked rtl rtl-mutations rtl-quick fuzz soak bench reproduce reproduce-quick lint format lock licences install wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

build: cargo $(VENV)/.installed ## build everything; the commands are then in .venv/bin
	@for command in spincc spinrun spinkit-goal spinkit-machines spinkit-manuals spinkit-pspin; do ln -sf "$$(realpath $(TARGET))/release/$$command" $(VENV)/bin/$$command; done
	@mkdir -p $(VENV)/lib/pkgconfig
	@sed -e 's|@PREFIX@|$(CURDIR)|' -e 's|@INCLUDEDIR@|$${prefix}/sdk/include|' \
	    -e "s|@LIBDIR@|$$(realpath $(TARGET))/release|" sdk/portals4.pc.in > $(VENV)/lib/pkgconfig/portals4.pc
	@$(BIN)/python -m spinkit._manuals | $(BIN)/spinkit-manuals $(VENV)/share

cargo:
	cargo build $(CARGO_FLAGS) --exclude spinkit-benches --exclude spinkit-fuzzing

$(VENV)/.packages: requirements.txt
	@python3 -c 'import ensurepip, venv' 2>/dev/null || \
	    { echo "python3 cannot make virtual environments: apt-get install python3-venv" >&2; exit 1; }
	rm -rf $(VENV)
	python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --no-deps --no-compile -r requirements.txt
	touch $@

# Two MPIs, for tests and experiments: they have commands of the same names, so each gets its own folder.
$(VENV)/.mpi: requirements-mpi.txt $(VENV)/.packages
	for package in $$(sed -n 's/==.*//p' $<); do \
	    $(BIN)/pip install --quiet --no-deps --no-compile --prefix "$(VENV)/mpi/$$package" \
	        --requirement <(sed -n "/^$$package==/,/[^\\]$$/p" $<); done
	touch $@

# The package itself, in place: the environment then points to python/ and is never stale.
$(VENV)/.installed: $(VENV)/.packages pyproject.toml Cargo.toml python/build_backend/spinkit_build.py
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: build ## run the sPIN paper's ping-pong experiment: six lines, figures, a page
	$(BIN)/spinkit reproduce ping-pong

# The tools of the documentation site have a separate environment: nothing else needs them.
out/docs/.packages: requirements-docs.txt
	rm -rf out/docs/venv
	python3 -m venv out/docs/venv
	out/docs/venv/bin/pip install --quiet --no-deps -r requirements-docs.txt
	touch $@

docs: build out/docs/.packages ## build the documentation site, with the reference of C, Python, Rust and all commands (out/site)
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --no-deps --workspace --exclude spinkit-benches --exclude spinkit-fuzzing
	out/docs/venv/bin/python docs/site/build.py --bin $(BIN) --crates $(TARGET)/doc
	$(BIN)/pytest -q -rs tests/python/test_site_in_browser.py

reproduce: build $(VENV)/.mpi ## run every experiment, check it against the papers, and docs/validation.md against it
	$(BIN)/spinkit reproduce --all --check
	$(BIN)/spinkit validation --check

reproduce-quick: build $(VENV)/.mpi ## run every experiment with few values, and check it against the papers
	$(BIN)/spinkit reproduce --all --quick --check

bench: build ## measure how fast the simulator is (out/bench.json)
	$(BIN)/spinkit bench

# In the release profile, overflows wrap silently; these crates compute times, sizes and addresses from user input.
# Their tests, which start no processes, run with checks instead.
CHECKED := sim machine packets hpu accel pspin-unit net nic pspin-nic goal goal-cards mpi-trace output fuzzing

# All suites always run; the last line has the numbers of passed and failed tests. The tests of a Python file share
# their fixtures, and may use the same folders, so one process runs them all.
test: build $(VENV)/.mpi ## run all tests
	@mkdir -p out/test; status=0; \
	cargo test $(LIMITED) $(CARGO_FLAGS) --exclude spinkit-benches $(CHECKED:%=--exclude spinkit-%) $(TESTS) 2>&1 | tee out/test/cargo.log || status=1; \
	$(MAKE) --no-print-directory test-checked 2>&1 | tee out/test/checked.log || status=1; \
	$(BIN)/pytest -n 2 --dist loadfile 2>&1 | tee out/test/pytest.log || status=1; \
	awk '/^test result:/ { passed += $$4; failed += $$6 } \
	     /^([0-9]+ [a-z]+,? )+in [0-9.]+s/ { for (i = 1; i < NF; i++) { \
	         if ($$(i + 1) ~ /^passed/) passed += $$i; if ($$(i + 1) ~ /^(failed|error)/) failed += $$i } } \
	     END { printf "%d passed, %d failed\n", passed, failed; if (!passed) exit 1 }' \
	    out/test/cargo.log out/test/checked.log out/test/pytest.log || status=1; \
	exit $$status

test-checked: ## run the tests within a process, with checks of overflows and assertions
	cargo test $(LIMITED) --profile checked --locked $(TESTS) $(CHECKED:%=-p spinkit-%)

rtl: build ## build and test the hardware: its core, lint, units, lockstep, proofs (needs c++)
	@$(MAKE) --no-print-directory -C rtl all

rtl-mutations: build ## make known defects of the hardware's units: a test or a proof must find each (needs c++)
	@$(MAKE) --no-print-directory -C rtl test-mutations

rtl-quick: build ## the hardware's lint, short tests of its units, a short lockstep (needs c++)
	@$(MAKE) --no-print-directory -C rtl quick

fuzz: ## run every fuzzer for FUZZ_SECONDS (60); make test replays what they keep (needs c++)
	fuzz/run

soak: build $(VENV)/.mpi ## run short programs, waiting loops and programs with handlers thousands of times on a busy machine: no hang, no difference
	$(BIN)/python tests/soak/soak.py
	$(BIN)/python tests/soak/matrix.py
	$(BIN)/python tests/soak/looking.py

lint: build ## check format and common mistakes of all languages
	cargo fmt --all --check
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo clippy $(CARGO_FLAGS) --all-targets -- -D warnings
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --quiet --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)

format: $(VENV)/.packages ## rewrite all sources in the project's format
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	$(BIN)/ruff check --quiet --fix --select I
	$(BIN)/ruff format --quiet
	$(BIN)/clang-format -i $(C_FILES)

# The index gives the hashes of the files for all kinds of computers.
lock: ## pin the newest versions of what all requirements*.in name, with hashes, and list all licences in THIRD-PARTY.md
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	python3 -m venv "$$fresh"; "$$fresh/bin/pip" install --quiet uv; \
	for list in requirements:.venv requirements-docs:out/docs/venv requirements-mpi:.venv/mpi rtl/requirements:out/rtl/venv; do \
	    file=$${list%%:*}; \
	    "$$fresh/bin/uv" pip compile --quiet --upgrade --generate-hashes --no-annotate --no-header --python "$$fresh/bin/python" \
	        $$(case $$file in *-mpi | rtl/*) echo --no-deps ;; esac) "$$file.in" > "$$fresh/list"; \
	    { echo "# Every package of $${list##*:}, pinned, with the hashes of its files. Written by \`make lock\` from $$file.in."; \
	      cat "$$fresh/list"; } > "$$file.txt"; done
	$(MAKE) --no-print-directory licences

licences: build $(VENV)/.mpi ## list the licences of all software of others in THIRD-PARTY.md
	$(BIN)/python python/build_backend/third_party.py > THIRD-PARTY.md

wheel: build ## build a wheel for machines without Rust and C compiler (out/wheel)
	rm -rf out/wheel
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir out/wheel .
	@ls -l out/wheel/*.whl

PREFIX ?= $(HOME)/.local/share/spinkit-venv
install: ## install for use outside this folder: make install PREFIX=DIR
	python3 -m venv "$(PREFIX)"
	"$(PREFIX)/bin/pip" install --quiet .
	@cd "$(PREFIX)/lib" && ln -sf libportals.so.4.3.0 libportals.so.4 && ln -sf libportals.so.4 libportals.so
	@"$(PREFIX)/bin/python" -m spinkit._manuals | "$(PREFIX)/bin/spinkit-manuals" "$(PREFIX)/share"
	@echo "spincc, spinrun and spinkit are in $(PREFIX)/bin, man pages and completions in $(PREFIX)/share, portals4 for pkg-config in $(PREFIX)/lib/pkgconfig"

clean: ## remove all that was made here
	rm -rf $(VENV) .cache out target .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find python tests -name __pycache__ -type d -prune -exec rm -rf {} +
