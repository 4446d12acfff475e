# The two commands of the README, and those of CONTRIBUTING.md. CMake does the work.
.PHONY: help setup build demo test test-mpi wheel dev asan tsan bench bench-posteriors docs fuzz format install clean
.DEFAULT_GOAL := help

PRESET ?= release
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
PURPOSE ?= build
CONFIGURE = cmake --preset $(PRESET) $(if $(HONE_CUDA),-DHONE_CUDA=$(HONE_CUDA))
BUILD = cmake --build --preset $(PRESET) -j $(JOBS)

help:
	@echo "make demo     install what is missing, build the program, reproduce Figure 1, train briefly on Fashion-MNIST, report"
	@echo "make test     install what is missing, build everything, run every test"
	@echo "make test-mpi the long tests of several ranks, with Open MPI and MPICH: about 15 minutes"
	@echo "make build    build the program: build/release/bin/hone (installs nothing)"
	@echo "make install  install program, library and headers (PREFIX=$(PREFIX))"
	@echo "make wheel    the Python package in dist/: an sdist, and a wheel for this Python (needs PyPI)"
	@echo "make setup    install the packages that a purpose needs (PURPOSE=build, demo, test, mpi, wheel, dev or docs)"
	@echo "make docs     the library's API page: build/docs/html/index.html"
	@echo "make bench    speed of a toy iteration, and of Figure 1"
	@echo "make bench-posteriors  verdicts, errors and gradients on the posteriors of examples/posteriors"
	@echo "make fuzz     run every fuzzer for RUNS=100000000 inputs, as many at a time as there are cores"
	@echo "make dev      check layout, lint and API page, build with warnings as errors, test"
	@echo "make asan     build and test under the address and undefined-behaviour sanitizers"
	@echo "make tsan     build and run the tests that use threads under the thread sanitizer"
	@echo "make format   lay out every source file by .clang-format"
	@echo "make clean    remove build/"
	@echo "HONE_CUDA=ON builds the CUDA engine on a machine without a device too, OFF never does (AUTO: where there is a device)."

setup:
	@scripts/setup $(PURPOSE)

build:
	@$(CONFIGURE) >/dev/null
	@$(BUILD) --target hone_program

demo:
	@scripts/setup demo
	@$(MAKE) --no-print-directory build
	@build/$(PRESET)/bin/hone reproduce fig1 --seeds 4 --out out/demo/fig1
	@scripts/demo build/$(PRESET)/bin/hone out/demo

test:
	@scripts/setup test
	@$(CONFIGURE) -DHONE_BUILD_TESTS=ON -DHONE_BUILD_BENCH=ON >/dev/null
	@$(BUILD)
	@ctest --preset $(PRESET) -j $(JOBS)

test-mpi:
	@scripts/setup mpi
	@$(CONFIGURE) -DHONE_BUILD_TESTS=ON >/dev/null
	@$(BUILD) --target hone_program fake_threads fake_slow
	@tests/mpi/both.sh build/$(PRESET)

wheel:
	@scripts/setup wheel
	@scripts/wheel dist

dev:
	@scripts/setup dev
	@scripts/check_style
	@$(MAKE) --no-print-directory test PRESET=dev

asan:
	@$(MAKE) --no-print-directory test PRESET=asan

tsan:
	@scripts/setup test
	@cmake --preset tsan -DHONE_CUDA=OFF -DHONE_BUILD_TESTS=ON >/dev/null
	@cmake --build --preset tsan -j $(JOBS) --target thread_tests
	@ctest --preset tsan -j $(JOBS)

bench:
	@$(CONFIGURE) -DHONE_BUILD_BENCH=ON >/dev/null
	@$(BUILD) --target bench_toy
	@build/$(PRESET)/bench/bench_toy

bench-posteriors:
	@$(CONFIGURE) -DHONE_BUILD_BENCH=ON >/dev/null
	@$(BUILD) --target calibration
	@build/$(PRESET)/bench/calibration --seeds 3 --jobs $(JOBS) --out build/posteriors.csv --summary build/posteriors.md \
	  --only eight_schools,arK,garch,kidiq,mesquite,sblrc,low_dim_gauss_mix,gp_regr

docs:
	@scripts/setup docs
	@scripts/api_docs build/docs

fuzz:
	@scripts/setup test
	@$(CONFIGURE) -DHONE_BUILD_TESTS=ON >/dev/null
	@scripts/fuzz build/$(PRESET) $(RUNS)

format:
	@git ls-files '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs clang-format -i

install: build
	@cmake --install build/$(PRESET) --prefix $(PREFIX)

clean:
	rm -rf build
