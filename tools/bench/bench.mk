# The benchmark suite, with a virtual GPU. Included by the Makefile.
# Further options: make bench BENCH_ARGS='--sections power,scaling'
BENCH_ARGS ?=
bench_python = $(VENV)/all/bin/python

.PHONY: bench bench-quick bench-gate
bench: $(VENV)/all/gpu
	$(bench_python) tools/bench/suite.py $(BENCH_ARGS)

bench-quick: $(VENV)/all/gpu
	$(bench_python) tools/bench/suite.py --quick $(BENCH_ARGS)

# What any machine can be held to, against the benchmarks.json that was last accepted; needs no GPU.
bench-gate: $(VENV)/all/stamp
	$(bench_python) tools/bench/suite.py --quick --sections gate --output build/bench-gate $(BENCH_ARGS)
	$(bench_python) tools/bench/gate.py benchmarks.json build/bench-gate/benchmarks.json
