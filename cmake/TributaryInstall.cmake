# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` leaves: the programs, and the client library as the
# package `tributary`, so that another project says
#   find_package(tributary REQUIRED)
#   target_link_libraries(... tributary::tributary_client)
include(CMakePackageConfigHelpers)

# Appends a target's libraries of this project, and theirs, to the list `out`.
function(tributary_library_closure target out)
  set(closure ${${out}})
  if(target IN_LIST closure)
    return()
  endif()
  list(APPEND closure ${target})
  get_target_property(dependencies ${target} INTERFACE_LINK_LIBRARIES)
  foreach(dependency ${dependencies})
    if(dependency MATCHES "^(\\$<LINK_ONLY:)?(tributary_[a-z_]+)>?$")
      tributary_library_closure(${CMAKE_MATCH_2} closure)
    endif()
  endforeach()
  set(${out} ${closure} PARENT_SCOPE)
endfunction()

# tributary_install(PROGRAMS target ... LIBRARIES target ...)
# Libraries take along what they are built on. The target `tributary_installed`
# builds all that is installed, without the tests.
function(tributary_install)
  cmake_parse_arguments(ARG "" "" "PROGRAMS;LIBRARIES" ${ARGN})
  install(TARGETS ${ARG_PROGRAMS} RUNTIME COMPONENT programs)

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
