# `make test-gpu`: tests on OpenVINO's real GPU plugin, which a virtual GPU serves. Included by the Makefile
# of the project, whose definitions it uses.
.PHONY: test-gpu
test-gpu: $(VENV)/all/gpu
	$(VENV)/all/bin/python tools/virtual_gpu/run_tests.py -- $(PYTEST_ARGS)

$(VENV)/all/gpu: $(VENV)/all/stamp $(shell find tools/virtual_gpu -type f -not -path '*/__pycache__/*')
	$(VENV)/all/bin/python tools/virtual_gpu/install.py --werror
	touch $@
