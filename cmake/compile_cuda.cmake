# cmake -DNVCC=… -DHOST=… -DARCHITECTURES=80,90a -DINCLUDE=… -DSOURCE=… -DOBJECT=… -P compile_cuda.cmake: makes OBJECT, OBJECT.d (its
# dependencies) and OBJECT.log (the output of ptxas on each kernel).
list(REMOVE_ITEM NVCC "" SB_CCACHE-NOTFOUND)
# Architectures that have the same instructions share the output of nvcc's first stage, which takes half of the time.
string(REPLACE "," ";" ARCHITECTURES ${ARCHITECTURES})
foreach(architecture ${ARCHITECTURES})
  set(stage ${architecture})
  if(architecture MATCHES "^8[0-9]$")
    set(stage 80)
  elseif(architecture MATCHES "^1[0-9][0-9]$")
    set(stage 100)
  endif()
  list(APPEND code -gencode=arch=compute_${stage},code=sm_${architecture})
endforeach()
execute_process(
  COMMAND ${NVCC} -ccbin ${HOST} -O3 -std=c++20 ${code} -I${INCLUDE} --ptxas-options=-v -MD -MF ${OBJECT}.d -c ${SOURCE} -o ${OBJECT}
  OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
file(WRITE ${OBJECT}.log "${said}")
if(failed)
  file(REMOVE ${OBJECT})
  message(FATAL_ERROR "${SOURCE} does not compile:\n${said}")
endif()
