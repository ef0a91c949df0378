# Every target makes what it needs under .venv from nothing but python3, a C++17 compiler and make: the C++ is compiled
# once, into one wheel, which every environment gets. Another interpreter gets its own folder:
# make test PYTHON=python3.12 VENV=.venv/312
PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
# The environment of `make test`: `test` has little in it, `all` has what every other target needs.
TEST_ENV ?= test
# How tests run that need no more than one core: in so many processes, each of which begins with files of its own.
WORKERS ?= 2
shared = -m 'not alone' -n $(WORKERS) --dist worksteal

native_sources := $(shell find csrc -type f)
package_sources := $(shell find ov_autoplace ov_autoplace_command -type f -not -path '*/__pycache__/*' -not -name '*.so')
wheel_inputs := pyproject.toml CMakeLists.txt $(native_sources) $(package_sources)
cpp_sources := $(shell find csrc tools/cpp tools/virtual_gpu tests/native -name '*.cpp' -o -name '*.hpp' -o -name '*.h')

# What the many processes of the tests import, rewritten tests above all, is compiled once, whatever the caller's habit.
unexport PYTHONDONTWRITEBYTECODE

comma := ,
pip = $(VENV)/$(1)/bin/python -m pip --quiet --disable-pip-version-check
# $(call environment,NAME): makes it where it is not there yet.
environment = test -x $(VENV)/$(1)/bin/python || \
	{ $(PYTHON) -m venv $(VENV)/$(1) && $(call pip,$(1)) install --upgrade pip; }
# $(call install,NAME,[EXTRAS] --group GROUP): gives it the wheel with extras, the OpenVINO that it was built for, and what
# developers need beside it; of a wheel that was built anew, that alone.
install = $(call environment,$(1)) && \
	$(call pip,$(1)) install $$(echo $(VENV)/wheel/*.whl)$(2) "$$($(openvino))" && \
	$(call pip,$(1)) install --force-reinstall --no-deps $(VENV)/wheel/*.whl
# $(call pytest,NAME): tests/conftest.py takes the sources from the path, which would hide the installed package.
pytest = $(VENV)/$(1)/bin/python -m pytest
# Prints the OpenVINO that the wheel is built for.
openvino = $(VENV)/tools/bin/python tools/wheels/openvino_requirement.py
# Where PYTEST_ARGS name files that have no test for one of two runs, pytest says so with 5.
or_none = || test $$? -eq 5

.PHONY: help demo trial test test-optional test-all test-releases test-fleet test-native test-integrations test-sanitize lint docs
.PHONY: format stub nightly clean
help:
	@echo 'make demo        install the package, and see what it gains here on three small networks, and where it does not'
	@echo 'make test        the tests that need no torch; its last line says what was left out'
	@echo 'make test-all    all tests but those below (installs torch, DGL where it has wheels, and transformers)'
	@echo 'make test-fleet  the commands for many machines, on a Ray cluster of several nodes here'
	@echo 'make test-releases the same wheel beside other releases of OpenVINO; RELEASES=... RELEASE_TESTS=...'
	@echo 'make test-native annotated models in unmodified programs: GenAI, optimum-intel, benchmark_app, C++'
	@echo 'make test-integrations AUTOPLACE in optimum-intel, torch.compile, NNCF models, openvino_tokenizers'
	@echo 'make test-sanitize the native library under address, undefined behaviour and thread sanitizers'
	@echo 'make test-gpu    tests on the real GPU plugin, on a virtual GPU'
	@echo 'make fuzz        every reader against made-up files; make faults: a kill, a full disk, at every write'
	@echo 'make lint        ruff, mypy, clang-format, one-way imports, the type stub of the C++ core, the documents'
	@echo 'make docs        the documentation site, into build/docs (Python 3.11 or later)'
	@echo 'make nightly     all of the above, whole, with every Python and all seeds (hours)'
	@echo 'make wheels      wheels for Python 3.10 to 3.13 into dist, each tried without a compiler; PYTHONS=...'
	@echo 'make bench       the whole benchmark suite: docs/measured.md, benchmarks.json (hours, idle machine)'
	@echo 'make bench-quick the same, meant for less than 10 minutes on 2 idle cores'
	@echo 'make bench-gate  ratios that hold on any machine against the accepted benchmarks.json'
	@echo 'make format      let ruff and clang-format rewrite the sources'
	@echo 'make stub        regenerate ov_autoplace/_core.pyi after a change of the bindings'
	@echo 'make clean       remove the environments and build folders'

# Both see only the installed package: they run in folders that do not hold the sources.
demo: $(VENV)/clean/page
	mkdir -p build/demo
	cd build/demo && $(abspath $(VENV))/clean/bin/python $(CURDIR)/tools/demo.py

# What a user does first with the wheel, where no program is found in PATH and so no compiler.
trial: $(VENV)/clean/stamp
	rm -rf build/trial && mkdir -p build/trial
	cd build/trial && PATH=$(CURDIR)/build/trial $(abspath $(VENV))/clean/bin/python -I $(CURDIR)/tools/wheels/try_wheel.py

# What measures, or needs several cores, has the machine for itself; the rest shares it.
test: $(VENV)/$(TEST_ENV)/stamp
	$(call pytest,$(TEST_ENV)) $(shared) $(PYTEST_ARGS) $(or_none)
	$(call pytest,$(TEST_ENV)) -m alone $(PYTEST_ARGS) $(or_none)

# What `make test` leaves out for want of a package.
test-optional: $(VENV)/all/stamp
	$(call pytest,all) --only-optional $(required) $(shared) tests tests/bench $(PYTEST_ARGS) $(or_none)
	$(call pytest,all) --only-optional $(required) -m alone tests tests/bench $(PYTEST_ARGS) $(or_none)
required := $(addprefix --require ,torch bokeh oracle metis)

test-all: test test-optional

# One wheel beside other releases of OpenVINO, none of which is installed: what a user does first, and RELEASE_TESTS.
# RELEASES names some; RELEASE_TESTS=tests runs all of `make test` beside them.
RELEASES ?= $(shell $(PYTHON) -c 'import runpy; print(*runpy.run_path("ov_autoplace/_version.py")["OPENVINO_RELEASES"])')
RELEASE_TESTS ?= tests/test_openvino_release.py tests/plan/test_partition.py
releases := $(abspath $(VENV))/releases
test-releases: $(VENV)/test/stamp
	PATH=$(abspath $(VENV))/tools/bin:$$PATH $(VENV)/test/bin/python tools/wheels/releases.py $(releases) $(RELEASES)
	cp -r $(releases)/native/. "$$($(call packages,test))/ov_autoplace/native"
	set -e; for release in $(RELEASES); do \
		echo "== OpenVINO $$release"; export PYTHONPATH=$(releases)/openvino/$$release; \
		rm -rf build/trial && mkdir -p build/trial; \
		(cd build/trial && PATH=$(CURDIR)/build/trial $(abspath $(VENV))/test/bin/python $(CURDIR)/tools/wheels/try_wheel.py); \
		$(call pytest,test) $(shared) $(RELEASE_TESTS) $(PYTEST_ARGS) $(or_none); \
		$(call pytest,test) -m alone $(RELEASE_TESTS) $(PYTEST_ARGS) $(or_none); \
	done

test-fleet: $(VENV)/all/stamp
	$(call pytest,all) tests/fleet --require fleet $(PYTEST_ARGS)

test-native: $(VENV)/programs/stamp
	$(call pytest,programs) tests/native --ignore tests/native/sanitizers $(PYTEST_ARGS)

test-integrations: $(VENV)/programs/stamp
	$(call pytest,programs) tests/integrations $(PYTEST_ARGS)

test-sanitize: $(VENV)/all/stamp
	$(call pytest,all) tests/native/sanitizers $(PYTEST_ARGS)

lint: $(VENV)/tools/stamp
	$(VENV)/tools/bin/ruff check --no-cache .
	$(VENV)/tools/bin/ruff format --check .
	$(VENV)/tools/bin/mypy
	$(VENV)/tools/bin/clang-format --dry-run --Werror $(cpp_sources)
	$(VENV)/tools/bin/lint-imports --no-cache
	$(VENV)/tools/bin/python -I tools/check_tree.py

docs: $(VENV)/tools/stamp
	rm -rf build/docs
	$(VENV)/tools/bin/sphinx-build --quiet --fresh-env --nitpicky --fail-on-warning --keep-going \
		-d build/doctrees docs build/docs

format: $(VENV)/tools/stamp
	$(VENV)/tools/bin/ruff check --fix .
	$(VENV)/tools/bin/ruff format .
	$(VENV)/tools/bin/clang-format -i $(cpp_sources)

stub: $(VENV)/tools/stamp
	$(VENV)/tools/bin/python -I tools/check_tree.py --write

nightly:
	.ci/nightly

clean:
	rm -rf $(VENV) build dist

# The tools build the wheel, with warnings as errors, and check it. What they build with stays where it is, so that
# a change of Python alone compiles nothing and one of C++ little.
$(VENV)/tools/builder: pyproject.toml ov_autoplace/_version.py
	$(call environment,tools)
	$(call pip,tools) install --group build "$$($(openvino))"
	touch $@

$(VENV)/wheel/stamp: $(VENV)/tools/builder $(wheel_inputs)
	rm -rf $(VENV)/wheel
	PATH=$(abspath $(VENV))/tools/bin:$$PATH $(call pip,tools) wheel . --no-deps --no-build-isolation \
		--wheel-dir $(VENV)/wheel --config-settings=build-dir=$(VENV)/build \
		--config-settings=cmake.define.OV_AUTOPLACE_WERROR=ON
	touch $@

$(VENV)/tools/stamp: $(VENV)/wheel/stamp
	$(call install,tools, --group lint --group docs)
	touch $@

$(VENV)/clean/stamp: $(VENV)/wheel/stamp
	$(call install,clean,)
	touch $@

# The page of the demo needs a package that the wheel does not bring.
$(VENV)/clean/page: $(VENV)/clean/stamp
	$(call pip,clean) install "$$(echo $(VENV)/wheel/*.whl)[report]"
	touch $@

$(VENV)/test/stamp: $(VENV)/wheel/stamp
	$(call install,test, --group test)
	touch $@

$(VENV)/all/stamp: $(VENV)/wheel/stamp
	$(call install,all,[dgl$(comma)report$(comma)fleet$(comma)oracle] --group all)
	touch $@

# A layer over `all` that holds other libraries, and other releases of what these share with it.
$(VENV)/programs/stamp: $(VENV)/all/stamp
	$(call environment,programs)
	$(call packages,all) >"$$($(call packages,programs))/all.pth"
	$(call pip,programs) install --group programs
	touch $@
packages = $(VENV)/$(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'

include tools/wheels/wheels.mk
include tools/virtual_gpu/virtual_gpu.mk
include tools/bench/bench.mk
include tools/fuzz/fuzz.mk
