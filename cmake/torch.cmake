# libtorch: the system's package, or a PyTorch install named by SELECTIVBENCH_TORCH_ROOT (its folder with include/ and lib/).
# TorchConfig.cmake is not used: it insists on a CUDA toolkit and on packages that a build from staged headers has not got.
set(SELECTIVBENCH_TORCH_ROOT "" CACHE PATH "Folder of a PyTorch install (empty: the system's libtorch)")
find_path(SB_TORCH_INCLUDE ATen/ATen.h HINTS ${SELECTIVBENCH_TORCH_ROOT}/include REQUIRED)
foreach(lib torch torch_cpu c10)
  find_library(SB_LIB_${lib} ${lib} HINTS ${SELECTIVBENCH_TORCH_ROOT}/lib REQUIRED)
  list(APPEND SB_TORCH_LIBS ${SB_LIB_${lib}})
endforeach()
foreach(lib torch_cuda c10_cuda)
  find_library(SB_LIB_${lib} ${lib} HINTS ${SELECTIVBENCH_TORCH_ROOT}/lib)
  if(SB_LIB_${lib})
    list(APPEND SB_TORCH_CUDA_LIBS ${SB_LIB_${lib}})
  endif()
endforeach()
find_package(OpenMP REQUIRED)

# CUDA: where libtorch has it and a toolkit is found (on the PATH, in CUDA_HOME or in the usual folder).
find_program(SB_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin PATHS /usr/local/cuda/bin)
if(SB_NVCC)
  get_filename_component(SB_CUDA_HOME ${SB_NVCC} DIRECTORY)
  get_filename_component(SB_CUDA_HOME ${SB_CUDA_HOME} DIRECTORY)
endif()
find_path(SB_CUDA_INCLUDE cuda_runtime_api.h HINTS ${SB_CUDA_HOME}/include)
find_library(SB_CUDART cudart HINTS ${SB_CUDA_HOME}/lib64 ${SB_CUDA_HOME}/lib)
set(SB_CUDA_FOUND OFF)
if(SB_NVCC AND SB_CUDA_INCLUDE AND SB_CUDART AND SB_LIB_torch_cuda AND SB_LIB_c10_cuda AND EXISTS ${SB_TORCH_INCLUDE}/ATen/cuda/CUDAGraph.h)
  set(SB_CUDA_FOUND ON)
endif()
option(SELECTIVBENCH_CUDA "Build for NVIDIA GPUs of compute capability 9.0" ${SB_CUDA_FOUND})
if(SELECTIVBENCH_CUDA AND NOT SB_CUDA_FOUND)
  message(FATAL_ERROR "SELECTIVBENCH_CUDA needs nvcc, cudart and a libtorch with CUDA; see `make gpu`")
endif()
message(STATUS "CUDA: ${SELECTIVBENCH_CUDA} (nvcc ${SB_NVCC}, libtorch_cuda ${SB_LIB_torch_cuda})")
if(SELECTIVBENCH_CUDA)
  set(CMAKE_CUDA_COMPILER ${SB_NVCC})
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90a)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  enable_language(CUDA)
endif()

add_library(sb_torch_flags INTERFACE)
target_include_directories(sb_torch_flags SYSTEM INTERFACE ${SB_TORCH_INCLUDE}
                                                           ${SB_TORCH_INCLUDE}/torch/csrc/api/include)
# PyTorch's libtorch exports a std::filesystem of another compiler; the C++ library must be found before it.
target_link_libraries(sb_torch_flags INTERFACE sb_flags OpenMP::OpenMP_CXX stdc++ ${SB_TORCH_LIBS})
if(SELECTIVBENCH_CUDA)
  target_include_directories(sb_torch_flags SYSTEM INTERFACE ${SB_CUDA_INCLUDE})
  target_link_libraries(sb_torch_flags INTERFACE ${SB_CUDART})
endif()
if(SB_TORCH_CUDA_LIBS)
  # Nothing here calls into these by symbol; they register the CUDA backend when loaded.
  target_link_options(sb_torch_flags INTERFACE -Wl,--no-as-needed)
  target_link_libraries(sb_torch_flags INTERFACE ${SB_TORCH_CUDA_LIBS})
endif()

# One precompiled header serves every room that sees torch.
add_library(sb_torch_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
target_link_libraries(sb_torch_pch PUBLIC sb_torch_flags)
target_precompile_headers(sb_torch_pch PRIVATE ${PROJECT_SOURCE_DIR}/src/base/torch_pch.h <fmt/format.h>
                                               <nlohmann/json.hpp> <xsimd/xsimd.hpp>)

# One for their tests.
if(SELECTIVBENCH_TESTS)
  add_library(sb_torch_test_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
  target_link_libraries(sb_torch_test_pch PUBLIC sb_torch_flags GTest::gtest)
  target_compile_options(sb_torch_test_pch PRIVATE ${SB_LITTLE_OPTIMISATION})
  target_precompile_headers(sb_torch_test_pch PRIVATE ${PROJECT_SOURCE_DIR}/src/base/torch_pch.h <gtest/gtest.h>
                                                      <fmt/format.h> <nlohmann/json.hpp>)
endif()
