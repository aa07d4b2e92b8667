# The two commands of the README are `make bench` and `make test`; each installs what is missing, builds and runs.
BUILD ?= build/release
JOBS ?= $(shell nproc)
CMAKE_FLAGS ?=
FUZZ_SECONDS ?= 600
PREFIX ?= /usr/local
TSAN_TESTS = test_base random_test grammar_test automaton_file_test test_tasks test_config test_store test_suites test_report test_findings test_page test_jobs test_http test_suite loader_test

.PHONY: all build program gpu gpu-program gpu-kernels gpu-check dist install deb python python-build site wheel charts vega page-tools test-browser bench bench-data bench-kernels bench-train bench-python test test-all test-model coverage asan tsan fuzz format format-check deps clean
all: build

deps:
	@scripts/install-deps build

build: deps
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(CMAKE_FLAGS)
	@ninja -C $(BUILD) -j $(JOBS)

# The program without its tests.
program: deps
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(CMAKE_FLAGS)
	@ninja -C $(BUILD) -j $(JOBS) selectivbench

# For an NVIDIA GPU. Needs nvcc and a PyTorch with CUDA: that of python3, or TORCH_ROOT (its folder with include/ and lib/). Works without
# root: header-only dependencies come from the system or from staged/ (make dist). GPU_ARCH: 90a, 80,89 or all; default: the machine's GPUs.
TORCH_ROOT ?= $(shell python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))' 2> /dev/null)
GPU_BUILD ?= build/gpu
GPU_TESTS ?= OFF
GPU_ARCH ?=
STAGED = $(wildcard staged/include)
gpu-program:
	@test -n "$(TORCH_ROOT)" || { echo "[make gpu] no PyTorch: python3 imports no torch; pip install torch, or TORCH_ROOT=<folder with include/ and lib/>" >&2; exit 2; }
	@test -e "$(TORCH_ROOT)/lib/libtorch_cuda.so" || { echo "[make gpu] $(TORCH_ROOT) has no CUDA (lib/libtorch_cuda.so); install a PyTorch with CUDA, or name one by TORCH_ROOT=" >&2; exit 2; }
	@PATH="$$PATH:$${CUDA_HOME:-/usr/local/cuda}/bin" command -v nvcc > /dev/null || { echo "[make gpu] no nvcc on the PATH, in CUDA_HOME or in /usr/local/cuda; install the CUDA toolkit" >&2; exit 2; }
	@cmake -S . -B $(GPU_BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DSELECTIVBENCH_CUDA=ON -DSELECTIVBENCH_TESTS=$(GPU_TESTS) \
	  -DSELECTIVBENCH_CUDA_ARCHITECTURE="$(or $(GPU_ARCH),$$(scripts/gpu-arch))" \
	  -DSELECTIVBENCH_TORCH_ROOT="$(TORCH_ROOT)" $(if $(STAGED),-DSELECTIVBENCH_HEADERS=$(abspath $(STAGED))) $(CMAKE_FLAGS)
	@ninja -C $(GPU_BUILD) -j $(JOBS) selectivbench

# Compiles the CUDA kernels for GPU_ARCH and prints their registers and spills. Needs nvcc and any libtorch, but no GPU.
gpu-kernels:
	@SELECTIVBENCH_TORCH_ROOT="$(TORCH_ROOT)" scripts/install-deps build
	@cmake -S . -B build/kernels -G Ninja -DCMAKE_BUILD_TYPE=Release -DSELECTIVBENCH_CUDA=AUTO -DSELECTIVBENCH_TESTS=OFF \
	  -DSELECTIVBENCH_CUDA_ARCHITECTURE="$(or $(GPU_ARCH),$$(scripts/gpu-arch))" -DSELECTIVBENCH_TORCH_ROOT="$(TORCH_ROOT)" $(CMAKE_FLAGS)
	@ninja -C build/kernels -j $(JOBS) cuda_kernels

gpu: gpu-program
	$(GPU_BUILD)/selectivbench doctor
	$(GPU_BUILD)/selectivbench verify tests/golden/layers --device cuda --precision fp32
	$(GPU_BUILD)/selectivbench bench gpu --width 256 --time 400

# GPU tests of kernels, models and training; takes minutes.
gpu-check:
	@$(MAKE) gpu-program GPU_TESTS=ON
	BUILD=$(GPU_BUILD) TORCH_ROOT="$(TORCH_ROOT)" JOBS=$(JOBS) scripts/gpu-check build test
	for precision in fp64 fp32 tf32 bf16; do \
	  $(GPU_BUILD)/selectivbench verify tests/golden/layers --device cuda --precision $$precision || exit 1; done
	tests/scripts/gpu.sh $(GPU_BUILD)/selectivbench

# Sources with the header-only dependencies: builds on any Linux with g++, CMake, Ninja and a PyTorch, without root.
dist: deps
	@scripts/stage-headers > /dev/null
	@scripts/dist

# The program, its configs and docs, the library and its headers under $(PREFIX), compiled for this machine; DESTDIR is respected.
install: program
	@ninja -C $(BUILD) -j $(JOBS) sb_library
	@cmake --install $(BUILD) --prefix $(PREFIX)

# A Debian package, compiled for x86-64-v3 or armv8-a: build/package/selectivbench_*.deb
deb: deps
	@scripts/install-deps package
	@cmake -S . -B build/package -G Ninja -DCMAKE_BUILD_TYPE=Release -DSELECTIVBENCH_NATIVE=OFF -DSELECTIVBENCH_TESTS=OFF \
	  $(CMAKE_FLAGS)
	@ninja -C build/package -j $(JOBS) selectivbench sb_library
	@cd build/package && cpack -G DEB

# Builds the Python package (docs/python.md) without torch for the given Python, installs it into a private environment and tests it
# there. `pip install .` builds the same package.
PYTHON ?= /usr/bin/python3
python-build: deps
	@cmake -S . -B build/python -G Ninja -DCMAKE_BUILD_TYPE=Release -DSELECTIVBENCH_TORCH=OFF -DSELECTIVBENCH_TESTS=OFF -DSELECTIVBENCH_PYTHON=ON \
	  -DSELECTIVBENCH_PYTHON_EXECUTABLE=$(PYTHON) $(CMAKE_FLAGS)
	@ninja -C build/python -j $(JOBS) sb_python selectivbench

python:
	@scripts/install-deps python
	@$(MAKE) --no-print-directory python-build
	scripts/test-python build/python $(PYTHON) build/python/selectivbench

# The leaderboard of shipped and submitted results, static pages: build/site/index.html
site: python-build
	@scripts/python-env build/python $(PYTHON) > /dev/null
	build/python/python/env/bin/python3 -m selectivbench site --out build/site results/*.tar.gz python/peers/*.tar.gz

# The package as a wheel for this architecture and Python, compiled for x86-64-v3 or armv8-a: dist/selectivbench-*.whl
wheel: deps
	@scripts/wheel dist $(PYTHON)

# Gets Vega first if npm is installed, since the program includes it when it is built.
bench:
	@{ command -v npm && $(MAKE) vega; } > /dev/null 2>&1 || \
	  echo "[make bench] npm did not bring Vega: the page draws its main figures only" >&2
	@$(MAKE) --no-print-directory program
	$(BUILD)/selectivbench suite configs/quick.toml --out runs/quick
	$(BUILD)/selectivbench report runs/quick --out runs/quick/report.html

# Vega for all charts of `report`: vega, vega-lite and vega-embed from npm, pinned by the lock file, into web/node_modules.
vega:
	@test web/node_modules/.package-lock.json -nt web/package-lock.json || $(NPM_CI) --prefix web

# Vega for an existing program: links it in without compiling any source.
charts:
	@scripts/install-deps charts
	@$(MAKE) --no-print-directory vega
	@test ! -x $(BUILD)/selectivbench || ninja -C $(BUILD) selectivbench

bench-data: program
	$(BUILD)/selectivbench bench data

bench-kernels: program
	$(BUILD)/selectivbench bench kernels --quick

bench-train: program
	$(BUILD)/selectivbench bench train

# After `make python`.
bench-python:
	build/python/python/env/bin/python3 bench/python_package.py

# Vega and the browser test's driver, pinned by their lock files.
NPM_CI = npm ci --loglevel=error --ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-timeout=60000
page-tools:
	@scripts/install-deps browser
	@for folder in web tests/browser; do \
	  test $$folder/node_modules/.package-lock.json -nt $$folder/package-lock.json || $(NPM_CI) --prefix $$folder || exit 1; \
	done

# All tests but the long ones (HACKING.md lists which run where). The timeout for hanging tests is ten times what an idle machine needs.
RUN_TESTS = scripts/run-tests
TEST_JOBS ?= $(shell expr $$(nproc) + 2) # some tests wait more than they compute
test: build
	@scripts/install-deps test || echo "[make test] without python3-torch: the Python package's tests with torch are skipped" >&2
	@$(RUN_TESTS) $(BUILD) -j $(TEST_JOBS) --timeout 1800 --label-exclude long

# All tests, including the long ones: CUDA kernels, Chromium, Slurm, many kills and signals; then coverage, sanitizers and fuzzing.
# Tests of Slurm, of pages in a browser and of the Dockerfile are skipped if their packages are not available. TMPDIR: the long tests run on disk.
test-all:
	@$(MAKE) --no-print-directory page-tools || echo "[make test-all] without npm or Chromium: the test of the page in a browser is skipped" >&2
	@scripts/install-deps slurm || echo "[make test-all] without Slurm: its test is skipped" >&2
	@scripts/install-deps debootstrap || echo "[make test-all] without debootstrap: the test of the Dockerfile's steps is skipped" >&2
	$(MAKE) test
	TMPDIR=$${TMPDIR:-/tmp} $(RUN_TESTS) $(BUILD) -j 2 --timeout 36000 --label-regex long
	$(MAKE) coverage
	$(MAKE) asan
	$(MAKE) tsan
	$(MAKE) fuzz FUZZ_SECONDS=60

# The report page in Chromium, with a driver from npm.
test-browser: page-tools
	@$(MAKE) --no-print-directory build
	@$(RUN_TESTS) $(BUILD) --timeout 3600 --tests-regex '^browser'

# Shows one model and runs its tests, e.g. make test-model MODEL=gla
test-model: deps
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(CMAKE_FLAGS)
	@ninja -C $(BUILD) -j $(JOBS) selectivbench models_test
	$(BUILD)/selectivbench models $(MODEL)
	$(BUILD)/tests/models/models_test --gtest_filter='*/$(MODEL)*'

# Line coverage of the modules without torch, at least 95 %.
coverage: deps
	@scripts/install-deps coverage
	@cmake --preset coverage && ninja -C build/coverage -j $(JOBS)
	@find build/coverage -name '*.gcda' -delete
	GTEST_FILTER=-*TrainingSetOfSeedOne* $(RUN_TESTS) build/coverage -j 2 --timeout 7200
	gcovr --root . --object-directory build/coverage --gcov-ignore-parse-errors \
	  --filter 'src/(base|random|grammar|tasks|config|store|suites|report|findings|page)/' --fail-under-line 95

# Every module and its tests under the sanitizers of memory and of undefined behaviour; leak detection is off, since libtorch is not instrumented.
asan: deps
	@cmake --preset $@ && ninja -C build/$@ -j $(JOBS)
	ASAN_OPTIONS=detect_leaks=0 $(RUN_TESTS) build/$@ -j 2 --timeout 7200 --label-exclude 'long|release'

# Thread sanitizer for the modules without torch, the loader and the processes of suites. OpenMP has one thread, since the sanitizer does
# not see libgomp's synchronisation and would report every parallel loop as a race.
tsan: deps
	@cmake --preset $@ && ninja -C build/$@ -j $(JOBS) $(TSAN_TESTS)
	OMP_THREAD_LIMIT=1 $(RUN_TESTS) build/$@ -j 2 --timeout 7200 --tests-regex "^($$(echo $(TSAN_TESTS) | tr ' ' '|'))$$"

fuzz: deps
	@scripts/install-deps fuzz
	@cmake --preset fuzz && ninja -C build/fuzz -j $(JOBS)
	@scripts/fuzz build/fuzz $(FUZZ_SECONDS)

SOURCES = $(shell git ls-files '*.h' '*.cpp')
format:
	@scripts/install-deps format
	@clang-format -i $(SOURCES)
format-check:
	@scripts/install-deps format
	@clang-format --dry-run --Werror $(SOURCES)

clean:
	rm -rf build
