# Fuzzing and injected faults; docs/contributing.md says more. Included by the Makefile.
# Further options: make fuzz FUZZ_ARGS='--inputs 1000000 --readers cost-table,target'
FUZZ_ARGS ?= --inputs 1000000 --seed $(shell date +%s)

.PHONY: fuzz faults
fuzz: $(VENV)/fuzz/stamp
	$(VENV)/fuzz/bin/python tools/fuzz/run.py $(FUZZ_ARGS)

# A kill, and a disk that fills up, at every single write instead of the sample that `make test-all` takes.
faults: $(VENV)/test-all/stamp
	AUTOPLACE_ALL_FAULTS=1 $(VENV)/test-all/bin/python -m pytest tests/faults $(PYTEST_ARGS)

$(VENV)/fuzz/stamp: $(build_inputs)
	$(call environment,fuzz)
	$(call editable,fuzz,fuzz)
	touch $@
