# The benchmark suite in an environment of its own, with a virtual GPU. Included by the Makefile.
# Further options: make bench BENCH_ARGS='--sections power,scaling --resume'
BENCH_ARGS ?=
bench_python = $(VENV)/bench/bin/python

.PHONY: bench bench-quick bench-gate
bench: $(VENV)/bench/stamp
	$(bench_python) tools/bench/suite.py $(BENCH_ARGS)

bench-quick: $(VENV)/bench/stamp
	$(bench_python) tools/bench/suite.py --quick $(BENCH_ARGS)

# What any machine can be held to, against the benchmarks.json that was last accepted; needs no GPU.
bench-gate: $(VENV)/test-all/stamp
	$(VENV)/test-all/bin/python tools/bench/suite.py --quick --sections gate --output build/bench-gate
	$(VENV)/test-all/bin/python tools/bench/gate.py benchmarks.json build/bench-gate/benchmarks.json

$(VENV)/bench/stamp: $(build_inputs) $(shell find tools/virtual_gpu -type f -not -path '*/__pycache__/*')
	$(call environment,bench)
	$(call editable,bench,test-all)
	$(bench_python) tools/virtual_gpu/install.py
	touch $@
