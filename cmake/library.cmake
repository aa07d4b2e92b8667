# `make install` also installs a library for other programs: grammar, task, score and ceiling, in one archive without torch.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
add_library(sb_library STATIC $<TARGET_OBJECTS:sb_base> $<TARGET_OBJECTS:sb_random> $<TARGET_OBJECTS:sb_grammar>
                              $<TARGET_OBJECTS:sb_tasks>)
set_target_properties(sb_library PROPERTIES OUTPUT_NAME selectivbench LINKER_LANGUAGE CXX
                                            ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
install(TARGETS sb_library ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

# The four headers of include/selectivbench and all that they include.
install(DIRECTORY include/selectivbench DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
foreach(header base/error random/mersenne random/pcg64 random/philox random/seed_sequence random/wide
               grammar/automaton grammar/automaton_json grammar/build grammar/figures grammar/language grammar/sampler
               tasks/baselines tasks/batch tasks/ceiling tasks/evaluate tasks/filter tasks/gap_process tasks/gap_task
               tasks/ngram tasks/ngram_source tasks/oracle tasks/metric_accumulator tasks/running_mean tasks/task tasks/task_config tasks/task_registry)
  get_filename_component(module ${header} DIRECTORY)
  install(FILES src/${header}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/selectivbench/${module})
endforeach()

set(SB_CONFIG_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/selectivbench)
file(RELATIVE_PATH SB_CONFIG_TO_PREFIX /${SB_CONFIG_FOLDER} /)
file(RELATIVE_PATH SB_PKGCONFIG_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/selectivbench.pc.in ${PROJECT_BINARY_DIR}/selectivbench.pc @ONLY)
configure_file(cmake/selectivbench-config.cmake.in ${PROJECT_BINARY_DIR}/selectivbench-config.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/selectivbench-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/selectivbench.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_BINARY_DIR}/selectivbench-config.cmake ${PROJECT_BINARY_DIR}/selectivbench-config-version.cmake
        DESTINATION ${SB_CONFIG_FOLDER})
