#!/usr/bin/env bash
# installed.sh BUILD: an installed program needs neither the checkout nor an environment: it finds its configs by name; the
# installed library and its headers are all that a program of others needs.
set -euo pipefail
build="$(readlink -f "$1")"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
fail() { echo "[installed] $*" >&2; exit 1; }

mkdir "$work/elsewhere"
cd "$work/elsewhere"

# uses PROGRAM: everything it is asked runs with an empty environment from an empty folder.
uses() {
  local program="$1" names
  [[ "$(env -i "$program" suite quick --list | grep -cE '[0-9a-f]{16}')" -ge 21 ]] || fail "suite quick does not list its runs"
  # its base lies in a neighbouring folder
  env -i "$program" suite ablations/channel_mixing --list >list || fail "suite ablations/channel_mixing"
  cmp -s list <(env -i "$program" suite ablations/channel_mixing.toml --list) || fail "with and without .toml differ"
  env -i "$program" config show example >shown || fail "config show example"
  grep -q 'vocab = 13' shown || fail "config show example shows another config"
  if env -i "$program" suite quik --list >/dev/null 2>error; then fail "suite quik is taken for something"; fi
  names="$(cat error)"
  [[ "$names" == *"did you mean quick?"*"shipped configs are in "*/configs* ]] || fail "suite quik: $names"
  # a file of that name comes first; a folder of that name does not
  printf '[train]\nlr = 0.125\n' >example
  env -i "$program" config show example | grep -q 'lr = 0.125' || fail "a file here does not come first"
  rm example && mkdir example
  env -i "$program" config show example | cmp -s shown - || fail "a folder here hides the shipped config"
  rmdir example
}

cmake --install "$build" --prefix "$work/prefix" >/dev/null
for file in share/doc/selectivbench/{copyright,README.md,CITATION.cff,docs/benchmark.md,docs/sample.svg} share/selectivbench/configs/paper/base.toml \
            bin/selectivbench libexec/selectivbench/selectivbench; do
  [[ -s "$work/prefix/$file" ]] || fail "$file is not installed"
done
uses "$work/prefix/bin/selectivbench"
# Libraries that libtorch names and does not use are not loaded (cmake/unused_libraries.cmake).
if [[ -d "$build/engine/unused" ]]; then
  for engine in "$build/engine/selectivbench" "$work/prefix/libexec/selectivbench/selectivbench"; do
    ldd "$engine" | grep "opencv" | grep -vq "=> $(dirname "$engine")/unused/" && fail "$engine loads OpenCV"
  done
fi
ln -s "$work/prefix/bin/selectivbench" "$work/link"
uses "$work/link"
uses "$build/selectivbench"

# The library: a program against its headers, found by pkg-config and by find_package; a shared library takes all of it.
source="$(dirname "$(readlink -f "$0")")/installed"
pc="$(find "$work/prefix" -name selectivbench.pc)"
[[ -n "$pc" ]] || fail "selectivbench.pc is not installed"
compiler="$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")"
if command -v pkg-config >/dev/null; then
  read -ra flags <<<"$(PKG_CONFIG_PATH="$(dirname "$pc")" pkg-config --cflags --libs selectivbench)"
else
  flags=("-I$work/prefix/include" "-I$work/prefix/include/selectivbench" "$(find "$work/prefix" -name libselectivbench.a)" -pthread)
fi
"$compiler" -std=c++20 -Wall -Wextra -Werror "$source/main.cpp" "${flags[@]}" -o "$work/linked" || fail "the library does not link"
said="$("$work/linked")" || fail "the linked program"
[[ "$said" =~ ^states\ ([0-9]+),\ frames\ ([0-9]+),\ accuracy\ ([0-9.]+),\ ceiling\ ([0-9.]+)$ ]] || fail "linked: $said"
[[ "${BASH_REMATCH[3]}" == "${BASH_REMATCH[4]}" ]] || fail "score and ceiling of the same filter differ: $said"
counted="$("$work/prefix/bin/selectivbench" ceiling --vocab 6 --ambiguities 2 --depth 3 --length 50 --task 2 --samples 20 --json - |
  sed -n 's/.*"counted": \([0-9.]*\).*/\1/p')"
[[ "$(printf %.6f "$counted")" == "${BASH_REMATCH[4]}" ]] || fail "the program counts $counted, the library says: $said"
"$compiler" -shared -o "$work/all.so" -Wl,--whole-archive "$(find "$work/prefix" -name libselectivbench.a)" -Wl,--no-whole-archive \
  -Wl,-z,text || fail "the library is not position-independent"
cmake -S "$source" -B "$work/found" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$compiler" >"$work/found.log" 2>&1 &&
  cmake --build "$work/found" >>"$work/found.log" 2>&1 || fail "find_package: $(tail -n 3 "$work/found.log")"
[[ "$("$work/found/linked")" == "$said" ]] || fail "the program of find_package says something else"

# The program alone, without configs anywhere: one line.
mkdir -p "$work/alone/engine"
cp "$work/prefix/bin/selectivbench" "$work/alone/"
if "$work/alone/selectivbench" suite quick --list 2>error; then fail "a launcher without its engine starts"; fi
[[ "$(cat error)" == "[selectivbench] cannot start $work/alone/"* ]] || fail "without its engine: $(cat error)"
cp "$work/prefix/libexec/selectivbench/selectivbench" "$work/alone/engine/"
if "$work/alone/selectivbench" suite quick --list 2>error; then fail "a program without configs finds one"; fi
[[ "$(cat error)" == "[suite FILE] no such file, "* ]] || fail "without configs: $(cat error)"

if command -v cpack >/dev/null && command -v dpkg-shlibdeps >/dev/null; then
  (cd "$build" && cpack -G DEB -B "$work/deb" >"$work/cpack.log") || fail "cpack: $(tail -n 3 "$work/cpack.log")"
  version="$("$build/selectivbench" --version)"
  version="${version#selectivbench }"
  deb="$(echo "$work"/deb/selectivbench_"${version%%,*}"_*.deb)"
  dpkg-deb -f "$deb" Depends | grep -q libstdc++6 || fail "the package declares no dependencies"
  dpkg-deb -f "$deb" Description | grep -qF "Compiled for: ${version#*compiled for }." || fail "the package does not say what it was compiled for"
  dpkg-deb -x "$deb" "$work/root"
  uses "$work/root/usr/bin/selectivbench"
fi
echo "installed: fine"
