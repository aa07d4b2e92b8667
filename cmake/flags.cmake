# Flags of our own files. Third-party headers are included as SYSTEM, so warnings are errors only in our code.
find_package(Threads REQUIRED)

add_library(sb_flags INTERFACE)
# No code reads errno after sqrt(). Without errno, loops with sqrt() can be vectorised. Values stay the same.
target_compile_options(sb_flags INTERFACE -fno-math-errno)
target_compile_options(sb_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
# g++ guesses string sizes after inlining and reports false overlaps or overruns in "literal" + std::string, depending on the length of the
# checkout's path (GCC bugs 105651, 105329). The sanitizer builds find real ones.
target_compile_options(sb_flags INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
# g++ 13 takes a reference into an argument for one into a temporary, if another argument is a temporary (GCC bug 107532).
target_compile_options(sb_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-dangling-reference>)
# On arm64 g++ notes that GCC 10.1 changed how pairs of doubles are passed; nothing here is linked with code of older compilers.
target_compile_options(sb_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>)
# g++ collects garbage from 128 MB on, which a precompiled header alone fills. From 1 GB on, a large test compiled in 7 % less time and with 15 % more
# memory (bench/notes/build.md).
target_compile_options(sb_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>)
# g++ 12 reports "undefined" registers in its own AVX-512 header as uninitialised (GCC bug 105593, fixed in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(sb_flags INTERFACE -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
target_include_directories(sb_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(sb_flags INTERFACE Threads::Threads)
if(SELECTIVBENCH_HEADERS)
  target_include_directories(sb_flags SYSTEM INTERFACE ${SELECTIVBENCH_HEADERS})
endif()
# SB_PROCESSOR: the processor the program is compiled for, shown by --version and in the description of the package.
if(SELECTIVBENCH_NATIVE)
  target_compile_options(sb_flags INTERFACE -march=native)
  set(SB_PROCESSOR "the processor of the machine it was built on")
else()
  set(SB_PROCESSOR "${SELECTIVBENCH_BASELINE}")
  if(NOT SB_PROCESSOR AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(SB_PROCESSOR x86-64-v3) # AVX2 and FMA: since 2013
  elseif(NOT SB_PROCESSOR AND CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(SB_PROCESSOR armv8-a)
  endif()
  if(SB_PROCESSOR)
    target_compile_options(sb_flags INTERFACE -march=${SB_PROCESSOR})
  else()
    set(SB_PROCESSOR "any ${CMAKE_SYSTEM_PROCESSOR}")
  endif()
endif()
if(SELECTIVBENCH_SANITIZE)
  target_compile_options(sb_flags INTERFACE -fsanitize=${SELECTIVBENCH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # Checks as function calls, little optimisation, line numbers only: the kernel loops compile in a sixth of the time.
  target_compile_options(sb_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-g1;-Og;--param=asan-instrumentation-with-call-threshold=0>
                                            $<$<NOT:$<CXX_COMPILER_ID:GNU>>:-g;-O1>)
  # Instrumented standard headers look uninitialised to g++ (GCC bug 105562).
  target_compile_options(sb_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(sb_flags INTERFACE -fsanitize=${SELECTIVBENCH_SANITIZE})
  target_compile_definitions(sb_flags INTERFACE SB_INSTRUMENTED)
endif()
if(SELECTIVBENCH_FUZZ)
  target_compile_options(sb_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The random streams are specified operation by operation: no contraction into FMA, ever.
add_library(sb_exact_flags INTERFACE)
target_compile_options(sb_exact_flags INTERFACE -ffp-contract=off)
target_link_libraries(sb_exact_flags INTERFACE sb_flags)

# Coverage flags, for the modules without torch.
add_library(sb_coverage_flags INTERFACE)
if(SELECTIVBENCH_COVERAGE)
  target_compile_definitions(sb_flags INTERFACE SB_INSTRUMENTED)
  target_compile_options(sb_coverage_flags INTERFACE --coverage)
  target_link_options(sb_coverage_flags INTERFACE --coverage)
endif()
