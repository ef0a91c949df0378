# `make test-gpu`: tests on OpenVINO's real GPU plugin, which a virtual GPU serves. Included by the Makefile
# of the project, whose definitions it uses.
.PHONY: test-gpu
test-gpu: $(VENV)/test-gpu/stamp
	$(VENV)/test-gpu/bin/python tools/virtual_gpu/run_tests.py -- $(PYTEST_ARGS)

$(VENV)/test-gpu/stamp: $(build_inputs) $(shell find tools/virtual_gpu -type f -not -path '*/__pycache__/*')
	$(call environment,test-gpu)
	$(call editable,test-gpu,test)
	$(VENV)/test-gpu/bin/python tools/virtual_gpu/install.py --werror
	touch $@
