# Fuzzing and injected faults; docs/contributing.md says more. Included by the Makefile.
# In minutes: make fuzz FUZZ_ARGS='--seconds 150 --jobs 2'. One reader: FUZZ_ARGS='--readers target --inputs 9000'
FUZZ_ARGS ?= --inputs 1000000 --seed $(shell date +%s)

.PHONY: fuzz faults
fuzz: $(VENV)/all/stamp
	$(VENV)/all/bin/python tools/fuzz/run.py $(FUZZ_ARGS)

# A kill, and a disk that fills up, at every single write instead of the sample that the tests take.
faults: $(VENV)/all/stamp
	AUTOPLACE_ALL_FAULTS=1 $(call pytest,all) $(shared) tests/faults/test_writes.py $(PYTEST_ARGS)
