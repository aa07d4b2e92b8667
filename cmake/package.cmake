# `make install` and `make deb`: the program, the shipped configs where it looks for them, the docs and the licence.
include(GNUInstallDirs)
install(TARGETS selectivbench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET selectivbench_engine)
  set_target_properties(selectivbench_engine PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON) # a PyTorch install outside the system's folders
  install(TARGETS selectivbench_engine RUNTIME DESTINATION libexec/selectivbench) # where launcher.cpp looks
endif()
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/selectivbench/configs FILES_MATCHING PATTERN "*.toml" PATTERN "*.txt")
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png")
install(FILES README.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON) # a package does not need the tests
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME selectivbench)
set(CPACK_PACKAGE_VENDOR "The SelectivBench developers")
set(CPACK_PACKAGE_CONTACT "The SelectivBench developers")
set(CPACK_PACKAGE_HOMEPAGE_URL "https://arxiv.org/abs/2601.12598")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "benchmark of selectivity in sequence models")
set(CPACK_PACKAGE_DESCRIPTION
    "How well sequence models keep what matters: sequences from random automata
with ambiguous symbols, gaps and noise, 21 models, and the exact ceiling
beside every accuracy.

Compiled for: ${SB_PROCESSOR}.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libopenblas0-openmp) # libtorch would also accept the slow reference BLAS
include(CPack)
