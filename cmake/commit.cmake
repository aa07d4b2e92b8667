# cmake -DSOURCE=… -DOUTPUT=… -P commit.cmake: a header with the commit the sources are at; written only where it changed.
set(commit "unknown")
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)  # not the repository an unpacked archive happens to lie in
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --tags --dirty --abbrev=12
                  OUTPUT_VARIABLE described RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed EQUAL 0 AND described MATCHES "^[A-Za-z0-9._/+-]+$")
    set(commit "${described}")
  endif()
endif()
set(text "#define SELECTIVBENCH_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
