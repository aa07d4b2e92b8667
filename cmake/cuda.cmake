# CUDA kernels: SELECTIVBENCH_CUDA = AUTO (if there are nvcc and a PyTorch with CUDA), ON or OFF. Calls nvcc for each file, so that CMake
# need not enable the language CUDA. Sets SB_CUDA. If there is an nvcc, the target and test cuda_kernels compile all kernels, with any
# libtorch, and print their registers and spills.
set(SELECTIVBENCH_CUDA AUTO CACHE STRING "CUDA kernels: AUTO, ON or OFF")
set(SELECTIVBENCH_CUDA_ARCHITECTURE 90a CACHE STRING "GPU architectures the CUDA kernels are compiled for: 90a, 80,89 or all")
find_package(CUDAToolkit QUIET)

# SB_CUDA_ARCHITECTURES: separated by commas. Code for compute capability 9.0 is always that for 90a, which has wgmma and TMA.
set(SB_CUDA_ARCHITECTURES ${SELECTIVBENCH_CUDA_ARCHITECTURE})
if(SB_CUDA_ARCHITECTURES STREQUAL "all")
  set(SB_CUDA_ARCHITECTURES 80,89,90a,100,120)
endif()
string(REGEX REPLACE "(^|,)90(,|$)" "\\190a\\2" SB_CUDA_ARCHITECTURES "${SB_CUDA_ARCHITECTURES}")
if(NOT SB_CUDA_ARCHITECTURES MATCHES "^(90a|[0-9]+)(,(90a|[0-9]+))*$")
  message(FATAL_ERROR "SELECTIVBENCH_CUDA_ARCHITECTURE: expected all, or architectures as 90a or 80,89, got "
                      "'${SELECTIVBENCH_CUDA_ARCHITECTURE}'")
endif()

set(SB_CUDA OFF)
if(NOT SELECTIVBENCH_CUDA STREQUAL "OFF")
  if(CUDAToolkit_NVCC_EXECUTABLE AND SB_TORCH_CUDA_LIBS)
    set(SB_CUDA ON)
  elseif(NOT SELECTIVBENCH_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "SELECTIVBENCH_CUDA=${SELECTIVBENCH_CUDA}: expected nvcc and a PyTorch with CUDA, got "
                        "nvcc '${CUDAToolkit_NVCC_EXECUTABLE}', libraries '${SB_TORCH_CUDA_LIBS}'")
  endif()
endif()

# Files that take longest to compile come first.
set(SB_CUDA_KERNELS
    general_delta_forward general_delta_backward gated_delta_forward gated_delta_backward general_delta_outer general_delta_channels
    general_delta_pairs decayed_attention_vector_backward norms decayed_attention_scalar_backward
    decayed_attention_vector_forward decayed_attention_scalar_forward selective_scan_backward gated_delta_prepare
    gated_delta_gradients adam conv4 decayed_attention decayed_attention_vector_channels decoder_loss forgetting_attention delta_join frames gated_delta gates
    general_delta decayed_attention_wgmma_backward decayed_attention_wgmma_forward decayed_attention_wgmma_heads head_copy head_scale
    log_linear_attention log_linear_attention_pairs log_linear_attention_rows mamba3_gates mamba3_keys mamba3_keys_backward mesa mlstm_rows residual_norm rope rows rwkv7_rows
    selective_scan selective_scan_forward selective_scan_segments step_gates tensor_copy token_shift)
# Conversion of tensors to pointers: needs ATen and the toolkit's headers, works with any libtorch.
set(SB_CUDA_BIND
    cuda/bind/adam.cpp
    cuda/bind/conv4.cpp
    cuda/bind/decayed_attention.cpp
    cuda/bind/decoder_cross_entropy.cpp
    cuda/bind/frame_rows.cpp
    cuda/bind/gated_delta.cpp
    cuda/bind/gates.cpp
    cuda/bind/general_delta.cpp
    cuda/bind/gru.cpp
    cuda/bind/log_linear_attention.cpp
    cuda/bind/mamba3.cpp
    cuda/bind/matmul.cpp
    cuda/bind/mesa.cpp
    cuda/bind/mlstm.cpp
    cuda/bind/norm.cpp
    cuda/bind/residual_norm.cpp
    cuda/bind/rope.cpp
    cuda/bind/rwkv7.cpp
    cuda/bind/selective_scan.cpp
    cuda/bind/skip_norm.cpp
    cuda/bind/tensors.cpp
    cuda/bind/token_shift.cpp)

if(NOT CUDAToolkit_NVCC_EXECUTABLE)
  if(SELECTIVBENCH_TESTS)
    add_test(NAME cuda_kernels COMMAND ${CMAKE_COMMAND} -E echo "skipped: no nvcc found, CUDA kernels are not compiled")
    set_tests_properties(cuda_kernels PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped" LABELS long)
  endif()
  return()
endif()

set(SB_CUDA_FOLDER ${PROJECT_BINARY_DIR}/cuda)
file(MAKE_DIRECTORY ${SB_CUDA_FOLDER}/checks)
function(sb_compile_cuda source object)
  get_filename_component(name ${source} NAME)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} "-DNVCC=${SB_CCACHE};${CUDAToolkit_NVCC_EXECUTABLE}" -DHOST=${CMAKE_CXX_COMPILER}
            -DARCHITECTURES=${SB_CUDA_ARCHITECTURES} -DINCLUDE=${PROJECT_SOURCE_DIR}/src -DSOURCE=${source}
            -DOBJECT=${object} -P ${PROJECT_SOURCE_DIR}/cmake/compile_cuda.cmake
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/compile_cuda.cmake
    DEPFILE ${object}.d
    COMMENT "CUDA ${name}"
    VERBATIM)
endfunction()
foreach(name ${SB_CUDA_KERNELS})
  sb_compile_cuda(${PROJECT_SOURCE_DIR}/src/kernels/cuda/${name}.cu ${SB_CUDA_FOLDER}/${name}.o)
  list(APPEND SB_CUDA_OBJECTS ${SB_CUDA_FOLDER}/${name}.o)
endforeach()
# Programs that scripts/gpu-check links and runs on a GPU
file(GLOB checks ${PROJECT_SOURCE_DIR}/tests/kernels/cuda/*_check.cu)
foreach(source ${checks})
  get_filename_component(name ${source} NAME_WE)
  sb_compile_cuda(${source} ${SB_CUDA_FOLDER}/checks/${name}.o)
  list(APPEND SB_CUDA_CHECKS ${SB_CUDA_FOLDER}/checks/${name}.o)
endforeach()

if(NOT SB_CUDA)  # otherwise the build compiles them anyway
  add_library(sb_cuda_bind OBJECT EXCLUDE_FROM_ALL ${SB_CUDA_BIND})
  target_link_libraries(sb_cuda_bind PUBLIC sb_torch_flags)
  target_precompile_headers(sb_cuda_bind REUSE_FROM sb_torch_pch)
  target_include_directories(sb_cuda_bind SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_options(sb_cuda_bind PRIVATE ${SB_LITTLE_OPTIMISATION_TORCH})
  set_target_properties(sb_cuda_bind PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endif()

# The host code of the recurrences on pretended GPUs, linked without a CUDA runtime.
set_source_files_properties(${SB_CUDA_OBJECTS} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set(recurrences ${SB_CUDA_OBJECTS})
list(FILTER recurrences INCLUDE REGEX "/(delta_join|gated_delta|general_delta|decayed_attention|forgetting_attention|log_linear_attention|mesa|selective_scan|rows|tensor_copy)[a-z_]*\\.o$")
add_executable(cuda_fits EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/kernels/cuda/fits_check.cpp ${recurrences})
target_link_libraries(cuda_fits PRIVATE sb_flags)
target_include_directories(cuda_fits SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})

add_custom_target(cuda_kernels
  COMMAND ${PROJECT_SOURCE_DIR}/scripts/cuda-report ${SB_CUDA_FOLDER}
  COMMAND cuda_fits
  DEPENDS ${SB_CUDA_OBJECTS} ${SB_CUDA_CHECKS} cuda_fits
  VERBATIM)
if(TARGET sb_cuda_bind)
  add_dependencies(cuda_kernels sb_cuda_bind)
endif()
if(SELECTIVBENCH_TESTS)
  add_test(NAME cuda_kernels COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target cuda_kernels)
  set_tests_properties(cuda_kernels PROPERTIES LABELS "long;release") # nvcc compiles them; no sanitizer of the host sees them
endif()

# sb_link_cuda(TARGET): kernels, the runtime and cuBLAS that PyTorch itself loads, and their headers
function(sb_link_cuda target)
  target_sources(${target} PRIVATE ${SB_CUDA_OBJECTS})
  target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  # A PyTorch from PyPI brings the libraries it was built with; they are found before the toolkit's, which may be older.
  get_filename_component(folder ${SB_LIB_torch_cuda} DIRECTORY)
  file(GLOB brought ${folder}/../../nvidia/*/lib/libcublas.so.* ${folder}/../../nvidia/*/lib/libcudart.so.*)
  foreach(library ${brought})
    get_filename_component(folder ${library} DIRECTORY)
    get_filename_component(folder ${folder} REALPATH)
    target_link_options(${target} PUBLIC LINKER:-rpath,${folder})
  endforeach()
  target_link_libraries(${target} PUBLIC CUDA::cublas CUDA::cudart)
endfunction()
