# cmake -DSOURCE=… -DOUTPUT=… -P commit.cmake: writes a header with the commit of the sources, only if it has changed.
set(commit "unknown")
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)  # ignores a repository that happens to contain an unpacked archive
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
