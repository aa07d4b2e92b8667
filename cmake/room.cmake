# Templates of these headers cost more than most files that use them: parsed once for the rooms without torch.
add_library(sb_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
target_link_libraries(sb_pch PUBLIC sb_flags)
# The rooms without torch may end up in shared libraries of others. Nobody replaces their functions there: without this flag g++
# inlines none that could be, which costs the streams 6 %.
set(SB_POSITION_INDEPENDENT -fno-semantic-interposition)
set_target_properties(sb_pch PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_options(sb_pch PRIVATE ${SB_POSITION_INDEPENDENT})
target_precompile_headers(sb_pch PRIVATE <fmt/format.h> <nlohmann/json.hpp> <filesystem> <fstream> <functional> <map>
                                         <optional> <string> <vector>)

# Files that only arrange, read and print are compiled with little optimisation; inner loops live elsewhere. In Release without
# sanitizers only: other builds say themselves how much they want, and a precompiled header must agree with its files.
if(SELECTIVBENCH_SANITIZE)
  set(SB_LITTLE_OPTIMISATION)
  set(SB_FULL_OPTIMISATION)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(SB_LITTLE_OPTIMISATION $<$<CONFIG:Release>:-O1>)
  set(SB_FULL_OPTIMISATION $<$<CONFIG:Release>:-O3>)
else()  # on x86 g++ 13 refuses to -O1 a precompiled header made with -O3: settings of the machine depend on the level there
  set(SB_LITTLE_OPTIMISATION $<$<CONFIG:Release>:-O2>)
  set(SB_FULL_OPTIMISATION $<$<CONFIG:Release>:-O3>)
endif()

# sb_room(NAME [EXACT] [TORCH] [ARRANGES] SOURCES … ROOMS …): one static library a folder of src/, linked only to the rooms below it.
function(sb_room name)
  cmake_parse_arguments(ARG "EXACT;ARRANGES;TORCH" "" "SOURCES;ROOMS" ${ARGN})
  add_library(sb_${name} STATIC ${ARG_SOURCES})
  if(ARG_ARRANGES)
    target_compile_options(sb_${name} PRIVATE ${SB_LITTLE_OPTIMISATION})
  endif()
  if(ARG_TORCH)
    target_link_libraries(sb_${name} PUBLIC sb_torch_flags)
    target_precompile_headers(sb_${name} REUSE_FROM sb_torch_pch)
  else()
    target_precompile_headers(sb_${name} REUSE_FROM sb_pch)
    target_link_libraries(sb_${name} PRIVATE sb_coverage_flags)
    set_target_properties(sb_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(sb_${name} PRIVATE ${SB_POSITION_INDEPENDENT})
  endif()
  if(ARG_EXACT)
    # Private: the rooms above are free to contract.
    target_link_libraries(sb_${name} PUBLIC sb_flags PRIVATE sb_exact_flags)
  else()
    target_link_libraries(sb_${name} PUBLIC sb_flags)
  endif()
  foreach(room ${ARG_ROOMS})
    target_link_libraries(sb_${name} PUBLIC sb_${room})
  endforeach()
endfunction()

# Tests are compiled once and run once; a precompiled header for what they all include.
if(SELECTIVBENCH_TESTS)
  add_library(sb_test_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
  target_link_libraries(sb_test_pch PUBLIC sb_flags GTest::gtest)
  target_compile_options(sb_test_pch PRIVATE ${SB_LITTLE_OPTIMISATION})
  target_precompile_headers(sb_test_pch PRIVATE <gtest/gtest.h> <fmt/format.h> <nlohmann/json.hpp> <filesystem>
                                                <fstream>)
endif()

# sb_test(NAME [TORCH] SOURCES … ROOMS …): one GoogleTest program, registered with ctest under its own name.
function(sb_test name)
  cmake_parse_arguments(ARG "TORCH" "TIMEOUT" "SOURCES;ROOMS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main sb_flags)
  foreach(room ${ARG_ROOMS})
    target_link_libraries(${name} PRIVATE sb_${room})
  endforeach()
  target_compile_options(${name} PRIVATE ${SB_LITTLE_OPTIMISATION})
  if(ARG_TORCH)
    target_link_libraries(${name} PRIVATE sb_torch_flags)
    target_precompile_headers(${name} REUSE_FROM sb_torch_pch)
  else()
    target_precompile_headers(${name} REUSE_FROM sb_test_pch)
  endif()
  target_compile_definitions(${name} PRIVATE SB_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/golden"
                                             SB_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()
