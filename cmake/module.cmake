# The modules without torch may become part of shared libraries. No other library replaces their functions, so g++ may inline them;
# without this flag it does not, which makes the sample streams 6 % slower.
set(SB_POSITION_INDEPENDENT -fno-semantic-interposition)

# Files without loops over elements are compiled with little optimisation. Only in Release without sanitizers: other builds set their own
# level, and a precompiled header must be compiled with the flags of its files.
if(SELECTIVBENCH_SANITIZE)
  set(SB_LITTLE_OPTIMISATION)
  set(SB_FULL_OPTIMISATION)
else()
  set(SB_LITTLE_OPTIMISATION $<$<CONFIG:Release>:-O1>)
  set(SB_FULL_OPTIMISATION $<$<CONFIG:Release>:-O3>)
endif()
# For files that use torch's precompiled header. On x86, g++ 13 rejects an -O3 header in -O1 files, since machine options depend on the
# level there.
set(SB_LITTLE_OPTIMISATION_TORCH ${SB_LITTLE_OPTIMISATION})
if(SB_LITTLE_OPTIMISATION AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(SB_LITTLE_OPTIMISATION_TORCH $<$<CONFIG:Release>:-O2>)
endif()

# Parsing these headers takes longer than compiling most files that use them. They are precompiled once for modules with ARRANGES and
# once, with full optimisation, for modules with loops.
function(sb_precompile name)
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
  target_link_libraries(${name} PUBLIC sb_flags)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${name} PRIVATE ${SB_POSITION_INDEPENDENT})
  target_precompile_headers(${name} PRIVATE ${ARGN} <algorithm> <filesystem> <fstream> <functional> <map> <optional> <string> <vector>)
endfunction()
sb_precompile(sb_pch <fmt/core.h> <nlohmann/json.hpp>)
target_compile_options(sb_pch PRIVATE ${SB_LITTLE_OPTIMISATION})
sb_precompile(sb_loops_pch <fmt/core.h>)

# sb_module(NAME [EXACT] [TORCH] [ARRANGES] SOURCES … MODULES …): one static library per folder of src/. MODULES: those it links to.
function(sb_module name)
  cmake_parse_arguments(ARG "EXACT;ARRANGES;TORCH" "" "SOURCES;MODULES" ${ARGN})
  add_library(sb_${name} STATIC ${ARG_SOURCES})
  if(ARG_TORCH)
    target_link_libraries(sb_${name} PUBLIC sb_torch_flags)
    target_precompile_headers(sb_${name} REUSE_FROM sb_torch_pch)
    target_compile_options(sb_${name} PRIVATE $<$<BOOL:${ARG_ARRANGES}>:${SB_LITTLE_OPTIMISATION_TORCH}>)
  else()
    if(ARG_ARRANGES)
      target_precompile_headers(sb_${name} REUSE_FROM sb_pch)
      target_compile_options(sb_${name} PRIVATE ${SB_LITTLE_OPTIMISATION})
    else()
      target_precompile_headers(sb_${name} REUSE_FROM sb_loops_pch)
    endif()
    target_link_libraries(sb_${name} PRIVATE sb_coverage_flags)
    set_target_properties(sb_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(sb_${name} PRIVATE ${SB_POSITION_INDEPENDENT})
  endif()
  if(ARG_EXACT)
    # Private, so that dependent modules may use contraction.
    target_link_libraries(sb_${name} PUBLIC sb_flags PRIVATE sb_exact_flags)
  else()
    target_link_libraries(sb_${name} PUBLIC sb_flags)
  endif()
  foreach(module ${ARG_MODULES})
    target_link_libraries(sb_${name} PUBLIC sb_${module})
  endforeach()
endfunction()

add_library(sb_unit_flags INTERFACE)
target_compile_options(sb_unit_flags INTERFACE -Wno-shadow)

# Tests share a precompiled header, compiled with little optimisation.
if(SELECTIVBENCH_TESTS)
  add_library(sb_test_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
  target_link_libraries(sb_test_pch PUBLIC sb_flags GTest::gtest)
  target_compile_options(sb_test_pch PRIVATE ${SB_LITTLE_OPTIMISATION})
  target_precompile_headers(sb_test_pch PRIVATE <gtest/gtest.h> <fmt/core.h> <nlohmann/json.hpp> <filesystem>
                                                <fstream>)
endif()

# sb_test(NAME [TORCH] SOURCES a b AND c d … MODULES …): one GoogleTest program, registered with ctest under its own name. Files between
# two ANDs are compiled together: reading the precompiled header takes as long as compiling a small test. Names in their anonymous
# namespaces must differ; a local variable may have the name of another file's constant.
function(sb_test name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;MODULES" ${ARGN})
  set(unit 0)
  set(sources)
  foreach(source ${ARG_SOURCES})
    if(source STREQUAL "AND")
      math(EXPR unit "${unit} + 1")
    else()
      list(APPEND sources ${source})
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP unit${unit})
    endif()
  endforeach()
  add_executable(${name} ${sources})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main sb_flags)
  foreach(module ${ARG_MODULES})
    target_link_libraries(${name} PRIVATE sb_${module})
  endforeach()
  target_link_libraries(${name} PRIVATE sb_unit_flags) # after sb_flags, so that it overrides them
  if(ARG_TORCH)
    target_link_libraries(${name} PRIVATE sb_torch_flags)
    target_compile_options(${name} PRIVATE ${SB_LITTLE_OPTIMISATION_TORCH})
    target_precompile_headers(${name} REUSE_FROM sb_torch_pch)
  else()
    target_compile_options(${name} PRIVATE ${SB_LITTLE_OPTIMISATION})
    target_precompile_headers(${name} REUSE_FROM sb_test_pch)
  endif()
  target_compile_definitions(${name} PRIVATE SB_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/golden"
                                             SB_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
endfunction()
