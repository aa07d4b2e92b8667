# libtorch: the system package, or a PyTorch install given by SELECTIVBENCH_TORCH_ROOT (its folder with include/ and lib/).
# TorchConfig.cmake is not used: it requires a CUDA toolkit and packages that a build from staged headers does not have.
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

# Several processes per run need libtorch's gloo and the headers of the same gloo version. Debian has them in the package libgloo-dev;
# PyTorch wheels have none, and those of another version would not match.
if(SELECTIVBENCH_TORCH_ROOT)
  find_path(SB_GLOO_INCLUDE gloo/config.h PATHS ${SELECTIVBENCH_TORCH_ROOT}/include NO_DEFAULT_PATH)
else()
  find_path(SB_GLOO_INCLUDE gloo/config.h)
endif()
if(SB_GLOO_INCLUDE AND NOT EXISTS ${SB_TORCH_INCLUDE}/torch/csrc/distributed/c10d/ProcessGroupGloo.hpp)
  set(SB_GLOO_INCLUDE "")
endif()

# GPUs use NCCL, which a PyTorch with CUDA contains; only headers are needed: those of the NCCL wheel next to PyTorch, or those of CUDA's
# or the system packages. The program compares their version with libtorch's.
set(SB_NCCL_INCLUDE "")
set(SB_NCCL_GROUP ${SB_TORCH_INCLUDE}/torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp)
if(SB_TORCH_CUDA_LIBS AND EXISTS ${SB_NCCL_GROUP})
  find_package(CUDAToolkit QUIET)
  find_path(SB_NCCL_HEADER nccl.h HINTS ${SB_TORCH_INCLUDE}/../../nvidia/nccl/include ${SB_TORCH_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
  # Process groups of older versions have no abort or shutdown.
  file(STRINGS ${SB_NCCL_GROUP} found REGEX " (abort|shutdown)\\(\\) override")
  list(LENGTH found count)
  if(SB_NCCL_HEADER AND count GREATER_EQUAL 2)
    set(SB_NCCL_INCLUDE ${SB_NCCL_HEADER})
  endif()
endif()

add_library(sb_torch_flags INTERFACE)
# PyTorch brings an fmt of its own; every module must see the same one, so the staged headers come before it.
target_include_directories(sb_torch_flags SYSTEM INTERFACE ${SELECTIVBENCH_HEADERS} ${SB_TORCH_INCLUDE}
                                                           ${SB_TORCH_INCLUDE}/torch/csrc/api/include)
# PyTorch's libtorch exports a std::filesystem of another compiler; the C++ library must be found before it.
target_link_libraries(sb_torch_flags INTERFACE sb_flags OpenMP::OpenMP_CXX stdc++ ${SB_TORCH_LIBS})
if(SB_TORCH_CUDA_LIBS)
  # Nothing here calls into these by symbol; they register the CUDA backend when loaded.
  target_link_options(sb_torch_flags INTERFACE -Wl,--no-as-needed)
  target_link_libraries(sb_torch_flags INTERFACE ${SB_TORCH_CUDA_LIBS})
endif()

# One precompiled header serves every module that sees torch, and their tests.
add_library(sb_torch_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
target_link_libraries(sb_torch_pch PUBLIC sb_torch_flags)
target_precompile_headers(sb_torch_pch PRIVATE ${PROJECT_SOURCE_DIR}/src/base/torch_pch.h <fmt/core.h>
                                               <nlohmann/json.hpp> <xsimd/xsimd.hpp>)
