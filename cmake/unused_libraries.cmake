# Debian's libtorch lists libraries for images and video that it never uses (`ldd -u`). With their dependencies, the loader loads 285
# libraries instead of 69, which takes half of every start. An empty library under their names, found first through the program's RPATH,
# replaces them. Other builds of libtorch do not list such libraries; then nothing is done.
set(SB_UNUSED_LIBRARIES)
if(NOT CMAKE_CROSSCOMPILING)
  execute_process(COMMAND ldd -u ${SB_LIB_torch_cpu} OUTPUT_VARIABLE unused ERROR_QUIET)
  string(REGEX MATCHALL "lib(opencv_[a-z0-9]+|avcodec|avformat|avutil|swscale|swresample)\\.so\\.[0-9]+" SB_UNUSED_LIBRARIES "${unused}")
endif()

# sb_without_unused_libraries(TARGET): for a program that links libtorch; the folder `unused` lies beside it.
function(sb_without_unused_libraries target)
  if(NOT SB_UNUSED_LIBRARIES)
    return()
  endif()
  set(folder ${PROJECT_BINARY_DIR}/engine/unused)
  set(links)
  foreach(name ${SB_UNUSED_LIBRARIES})
    list(APPEND links COMMAND ${CMAKE_COMMAND} -E create_symlink empty.so ${folder}/${name})
  endforeach()
  add_custom_command(OUTPUT ${folder}/empty.so
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
                     COMMAND ${CMAKE_CXX_COMPILER} -shared -nostdlib -x c++ /dev/null -o ${folder}/empty.so
                     ${links} VERBATIM)
  add_custom_target(sb_unused_libraries DEPENDS ${folder}/empty.so)
  add_dependencies(${target} sb_unused_libraries)
  # RPATH, not RUNPATH, since it also applies to dependencies of libraries.
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "\$ORIGIN/unused" BUILD_WITH_INSTALL_RPATH ON)
  install(DIRECTORY ${folder} DESTINATION libexec/selectivbench)
endfunction()
