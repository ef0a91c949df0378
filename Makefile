# Every target makes its own environment under .venv from nothing but python3, a C++17 compiler and make.
# Another interpreter gets its own folder: make test PYTHON=python3.12 VENV=.venv/312
PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=

native_sources := $(shell find csrc -type f)
checkpoint := $(wildcard models/autoplace-base/*)
build_inputs := pyproject.toml CMakeLists.txt ov_autoplace/_version.py $(native_sources) $(checkpoint)
package_sources := $(shell find ov_autoplace ov_autoplace_command -type f -not -path '*/__pycache__/*' -not -name '*.so')
cpp_sources := $(shell find csrc tools/cpp tools/virtual_gpu tests/native -name '*.cpp' -o -name '*.hpp' -o -name '*.h')

# $(call environment,name) makes an empty environment; pip is quiet but for errors.
environment = $(PYTHON) -m venv --clear $(VENV)/$(1) && $(VENV)/$(1)/bin/python -m pip install --quiet --upgrade pip
# Warnings are errors here, and each environment has its own build folder, so that none rebuilds the other's.
editable = $(VENV)/$(1)/bin/python -m pip install --quiet --editable '.[$(2)]' \
	--config-settings=build-dir=$(VENV)/$(1)/build --config-settings=cmake.define.OV_AUTOPLACE_WERROR=ON

.PHONY: help demo test test-all test-fleet test-native test-integrations test-sanitize lint docs format stub clean
help:
	@echo 'make demo        install the package, place a sample network on two devices, run it, print the table'
	@echo 'make test        the tests that need no torch; its last line says what was left out'
	@echo 'make test-all    all tests (installs torch, DGL where it has wheels, and transformers)'
	@echo 'make test-fleet  the commands for many machines, on a Ray cluster of several nodes here'
	@echo 'make test-native annotated models in unmodified programs: GenAI, optimum-intel, benchmark_app, C++'
	@echo 'make test-integrations AUTOPLACE in optimum-intel, torch.compile, NNCF models, openvino_tokenizers'
	@echo 'make test-sanitize the native library under AddressSanitizer and ThreadSanitizer'
	@echo 'make wheels      wheels for Python 3.10 to 3.13 into dist, each tried without a compiler; PYTHONS=...'
	@echo 'make docs        the documentation site, into build/docs (Python 3.11 or later)'
	@echo 'make test-gpu    tests on the real GPU plugin, on a virtual GPU'
	@echo 'make bench       the whole benchmark suite: BENCHMARKS.md, benchmarks.json (hours, idle machine)'
	@echo 'make bench-quick the same, meant for less than 10 minutes on 2 idle cores'
	@echo 'make bench-gate  ratios that hold on any machine against the accepted benchmarks.json'
	@echo 'make lint        ruff, mypy, clang-format, one-way imports, the type stub of the C++ core, the documents'
	@echo 'make format      let ruff and clang-format rewrite the sources'
	@echo 'make stub        regenerate ov_autoplace/_core.pyi after a change of the bindings'
	@echo 'make clean       remove the environments and build folders'

# The demo sees only the installed package: it runs in a folder that does not hold the sources.
demo: $(VENV)/demo/stamp
	mkdir -p build/demo
	cd build/demo && $(abspath $(VENV))/demo/bin/python $(CURDIR)/tools/demo.py

test: $(VENV)/test/stamp
	$(VENV)/test/bin/python -m pytest $(PYTEST_ARGS)

test-all: $(VENV)/test-all/stamp
	$(VENV)/test-all/bin/python -m pytest --require torch --require bokeh --require oracle $(PYTEST_ARGS)
	$(VENV)/test-all/bin/python -m pytest tests/bench --require torch --require metis

test-fleet: $(VENV)/test-fleet/stamp
	$(VENV)/test-fleet/bin/python -m pytest tests/fleet --require fleet --require torch --require bokeh $(PYTEST_ARGS)

test-native: $(VENV)/test-native/stamp
	$(VENV)/test-native/bin/python -m pytest tests/native --ignore tests/native/sanitizers $(PYTEST_ARGS)

# In the same environment, which holds the libraries already; the second device here is one that programs get from
# AUTOPLACE_EXTRA_DEVICES.
test-integrations: $(VENV)/test-native/stamp
	$(VENV)/test-native/bin/python -m pytest tests/integrations $(PYTEST_ARGS)

# In the same environment, as some of the programs want a second device.
test-sanitize: $(VENV)/test-native/stamp
	$(VENV)/test-native/bin/python -m pytest tests/native/sanitizers $(PYTEST_ARGS)

lint: $(VENV)/lint/stamp
	$(VENV)/lint/bin/ruff check --no-cache .
	$(VENV)/lint/bin/ruff format --check .
	$(VENV)/lint/bin/mypy
	$(VENV)/lint/bin/clang-format --dry-run --Werror $(cpp_sources)
	$(VENV)/lint/bin/lint-imports --no-cache
	$(VENV)/lint/bin/python tools/check_tree.py

docs: $(VENV)/docs/stamp
	rm -rf build/docs
	$(VENV)/docs/bin/sphinx-build --quiet --fresh-env --nitpicky --fail-on-warning --keep-going \
		-d build/doctrees docs build/docs
	$(VENV)/docs/bin/python tools/docs/check_site.py build/docs

format: $(VENV)/lint/stamp
	$(VENV)/lint/bin/ruff check --fix .
	$(VENV)/lint/bin/ruff format .
	$(VENV)/lint/bin/clang-format -i $(cpp_sources)

stub: $(VENV)/lint/stamp
	$(VENV)/lint/bin/python tools/check_tree.py --write

clean:
	rm -rf $(VENV) build dist

$(VENV)/demo/stamp: $(build_inputs) $(package_sources)
	$(call environment,demo)
	$(VENV)/demo/bin/python -m pip install --quiet . --config-settings=build-dir=$(VENV)/demo/build
	touch $@

$(VENV)/test/stamp: $(build_inputs)
	$(call environment,test)
	$(call editable,test,test)
	touch $@

$(VENV)/test-all/stamp: $(build_inputs)
	$(call environment,test-all)
	$(call editable,test-all,test-all)
	touch $@

$(VENV)/test-fleet/stamp: $(build_inputs)
	$(call environment,test-fleet)
	$(call editable,test-fleet,test-fleet)
	touch $@

# Each program of this environment, and no other, gets a second device.
$(VENV)/test-native/stamp: $(build_inputs) tests/native/second_device.py
	$(call environment,test-native)
	$(call editable,test-native,test-native)
	$(VENV)/test-native/bin/python tests/native/second_device.py
	touch $@

$(VENV)/docs/stamp: $(build_inputs)
	$(call environment,docs)
	$(call editable,docs,docs)
	touch $@

$(VENV)/lint/stamp: $(build_inputs)
	$(call environment,lint)
	$(call editable,lint,dev)
	touch $@

include tools/wheels/wheels.mk
include tools/virtual_gpu/virtual_gpu.mk
include tools/bench/bench.mk
include tools/fuzz/fuzz.mk
