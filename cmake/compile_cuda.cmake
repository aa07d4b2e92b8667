# cmake -DNVCC=… -DHOST=… -DARCHITECTURE=90a -DINCLUDE=… -DSOURCE=… -DOBJECT=… -P compile_cuda.cmake: makes OBJECT, OBJECT.d (its
# dependencies) and OBJECT.log (the output of ptxas on each kernel).
list(REMOVE_ITEM NVCC "" SB_CCACHE-NOTFOUND)
execute_process(
  COMMAND ${NVCC} -ccbin ${HOST} -O3 -std=c++20 -gencode=arch=compute_${ARCHITECTURE},code=sm_${ARCHITECTURE} -I${INCLUDE}
          --ptxas-options=-v -MD -MF ${OBJECT}.d -c ${SOURCE} -o ${OBJECT}
  OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
file(WRITE ${OBJECT}.log "${said}")
if(failed)
  file(REMOVE ${OBJECT})
  message(FATAL_ERROR "${SOURCE} does not compile:\n${said}")
endif()
