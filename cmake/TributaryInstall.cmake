# SPDX-License-Identifier: Apache-2.0
# `cmake --install` installs the programs, and the client library as the package
# `tributary`, so that another project says
#   find_package(tributary REQUIRED)
#   target_link_libraries(... tributary::tributary_client)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# tributary_install_binaries(DESTINATION COMPONENT target ...)
# Programs or modules without a search path of their own. CMake would link them with a
# path that ends with a colon, to change it when they are installed; the loader reads
# the empty entry after it as the current folder, whoever owns that.
function(tributary_install_binaries destination component)
  set_target_properties(${ARGN} PROPERTIES BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${ARGN} RUNTIME DESTINATION ${destination} COMPONENT ${component}
    LIBRARY DESTINATION ${destination} COMPONENT ${component})
  foreach(target ${ARGN})
    install(CODE "file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${destination}/$<TARGET_FILE_NAME:${target}>\")"
      COMPONENT ${component})
  endforeach()
endfunction()

# tributary_install(PROGRAMS target ... LIBRARIES target ...)
# Libraries are installed with the libraries that they depend on. The target
# `tributary_installed` builds all that is installed, without the tests.
function(tributary_install)
  cmake_parse_arguments(ARG "" "" "PROGRAMS;LIBRARIES" ${ARGN})
  tributary_install_binaries(${CMAKE_INSTALL_BINDIR} programs ${ARG_PROGRAMS})

  set(libraries)
  foreach(library ${ARG_LIBRARIES})
    tributary_library_closure(${library} libraries)
  endforeach()
  add_custom_target(tributary_installed)
  add_dependencies(tributary_installed ${ARG_PROGRAMS} ${libraries})
  set(include ${CMAKE_INSTALL_INCLUDEDIR}/tributary)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tributary)
  foreach(library ${libraries})
    # Generated code has no list of headers; it is installed below.
    get_target_property(headers ${library} INTERFACE_HEADER_SETS)
    if(headers)
      set(headers FILE_SET HEADERS DESTINATION ${include} COMPONENT client)
    else()
      set(headers)
    endif()
    install(TARGETS ${library} EXPORT tributary
      ARCHIVE COMPONENT client ${headers})
  endforeach()
  install(DIRECTORY ${CMAKE_BINARY_DIR}/generated/ DESTINATION ${include}
    COMPONENT client FILES_MATCHING PATTERN "*.h")

  install(EXPORT tributary NAMESPACE tributary:: DESTINATION ${package}
    FILE tributary-targets.cmake COMPONENT client)
  write_basic_package_version_file(
    ${CMAKE_CURRENT_BINARY_DIR}/tributary-config-version.cmake
    COMPATIBILITY SameMinorVersion)
  configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/tributary-config.cmake.in
    ${CMAKE_CURRENT_BINARY_DIR}/tributary-config.cmake
    INSTALL_DESTINATION ${package})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tributary-config.cmake
                ${CMAKE_CURRENT_BINARY_DIR}/tributary-config-version.cmake
    DESTINATION ${package} COMPONENT client)
endfunction()
