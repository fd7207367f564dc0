# make build   set up this machine and build; again: nothing is done twice
# make demo    train a real model on four hosts with slow links       STEPS=n ends early
# make demo-topics   topics of this machine's package descriptions, and a page to explore them
# make test    everything that CI runs
# make nightly second compiler, long fuzzing, soak
# make format, make tidy, make clean
# SHOAL_PYTHON=/path/to/python uses the PyTorch that you already have.

.PHONY: build demo demo-topics test nightly format tidy clean

build:
	@scripts/setup.sh
	@scripts/build.sh

demo: build
	@STEPS="$(STEPS)" scripts/demo.sh

demo-topics: build
	@SWEEPS="$(SWEEPS)" scripts/demo-topics.sh

test:
	@scripts/test.sh

nightly:
	@scripts/nightly.sh

format:
	@scripts/setup.sh test
	@git ls-files '*.h' '*.cc' | xargs clang-format-19 -i

tidy:
	@scripts/setup.sh test
	@scripts/tidy.sh

clean:
	rm -rf build
