# The two commands of the README, and those of CONTRIBUTING.md. CMake does the work.
.PHONY: help build demo test dev asan bench bench-posteriors install clean
.DEFAULT_GOAL := help

PRESET ?= release
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local

help:
	@echo "make demo     install what is missing, build, reproduce Figure 1, train on Fashion-MNIST briefly, report"
	@echo "make test     install what is missing, build, run every test"
	@echo "make bench    speed of a toy iteration, and of Figure 1"
	@echo "make bench-posteriors  errors and gradients on the posteriors with known answers"
	@echo "make dev      build and test with warnings as errors"
	@echo "make asan     build and test under the address and undefined-behaviour sanitizers"
	@echo "make install  install program, library and headers (PREFIX=$(PREFIX))"
	@echo "make clean    remove build/"

build:
	@scripts/bootstrap
	@[ -f build/$(PRESET)/build.ninja ] || cmake --preset $(PRESET) >/dev/null
	@cmake --build --preset $(PRESET) -j $(JOBS)

demo: build
	@build/$(PRESET)/bin/hone reproduce fig1 --seeds 4 --out out/demo/fig1
	@scripts/demo build/$(PRESET)/bin/hone out/demo

test: build
	@ctest --preset $(PRESET) -j $(JOBS)

dev:
	@$(MAKE) --no-print-directory test PRESET=dev

asan:
	@$(MAKE) --no-print-directory test PRESET=asan

bench: build
	@build/$(PRESET)/bench/bench_toy

bench-posteriors: build
	@build/$(PRESET)/bench/bench_posteriors 3 $(JOBS)

install: build
	@cmake --install build/$(PRESET) --prefix $(PREFIX)

clean:
	rm -rf build
