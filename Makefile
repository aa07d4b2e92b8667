# The two commands of the README are `make bench` and `make test`; each installs what is missing, builds and runs.
BUILD ?= build/release
JOBS ?= $(shell nproc)
CMAKE_FLAGS ?=
FUZZ_SECONDS ?= 600
PREFIX ?= /usr/local

.PHONY: all build install deb bench bench-data bench-kernels bench-train test test-model coverage asan ubsan tsan fuzz format format-check deps clean
all: build

deps:
	@scripts/install-deps build

build: deps
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(CMAKE_FLAGS)
	@ninja -C $(BUILD) -j $(JOBS)

# The program, its configs and docs under $(PREFIX), compiled for this machine; DESTDIR is respected.
install: deps
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(CMAKE_FLAGS)
	@ninja -C $(BUILD) -j $(JOBS) selectivbench
	@cmake --install $(BUILD) --prefix $(PREFIX)

# A Debian package, compiled for x86-64-v3 or armv8-a: build/package/selectivbench_*.deb
deb: deps
	@scripts/install-deps package
	@cmake -S . -B build/package -G Ninja -DCMAKE_BUILD_TYPE=Release -DSELECTIVBENCH_NATIVE=OFF -DSELECTIVBENCH_TESTS=OFF \
	  $(CMAKE_FLAGS)
	@ninja -C build/package -j $(JOBS) selectivbench
	@cd build/package && cpack -G DEB

bench: build
	$(BUILD)/selectivbench suite configs/quick.toml --out runs/quick

bench-data: build
	$(BUILD)/selectivbench bench data

bench-kernels: build
	$(BUILD)/selectivbench bench kernels --quick

bench-train: build
	$(BUILD)/selectivbench bench train

test: build
	ctest --test-dir $(BUILD) --output-on-failure -j 2

# One model: what it is, and the tests named after it; e.g. make test-model MODEL=gla
test-model: deps
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(CMAKE_FLAGS)
	@ninja -C $(BUILD) -j $(JOBS) selectivbench models_test
	$(BUILD)/selectivbench models $(MODEL)
	$(BUILD)/tests/models/models_test --gtest_filter='*/$(MODEL)*'

# Line coverage of the rooms without torch, at least 95 %.
coverage: deps
	@scripts/install-deps coverage
	@cmake --preset coverage && ninja -C build/coverage -j $(JOBS)
	@find build/coverage -name '*.gcda' -delete
	ctest --test-dir build/coverage --output-on-failure -j 2
	gcovr --root . --object-directory build/coverage --gcov-ignore-parse-errors \
	  --filter 'src/(base|random|grammar|tasks|runs|report)/' --fail-under-line 95

# The rooms without torch and their tests under a sanitizer.
asan ubsan tsan: deps
	@cmake --preset $@ -DSELECTIVBENCH_TORCH=OFF && ninja -C build/$@ -j $(JOBS)
	ctest --test-dir build/$@ --output-on-failure -j 2

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
