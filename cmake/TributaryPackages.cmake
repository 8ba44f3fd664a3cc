# SPDX-License-Identifier: Apache-2.0
# Debian packages, which `cpack` makes of a build (deploy/build_packages.sh):
#   tributary         programs, manual pages, completions
#   libtributary-dev  the client library for C++, with proto files
#   tributary-doc     README, documents, examples, rules and dashboard of monitoring
# Each of them is a group of components of the installation.
set(TRIBUTARY_PACKAGES tributary libtributary-dev tributary-doc)
set(TRIBUTARY_PACKAGE_MAINTAINER "Tributary contributors <tributary@localhost>"
  CACHE STRING "Name and address in the Debian packages")

# The Debian package of everything that the client library's CMake package looks for.
set(debian_Threads libc6-dev)
set(debian_absl libabsl-dev)
set(debian_Protobuf libprotobuf-dev protobuf-compiler)
set(debian_gRPC libgrpc++-dev protobuf-compiler-grpc)  # its package checks its plugins
set(debian_OpenSSL libssl-dev)
set(debian_nlohmann_json nlohmann-json3-dev)
set(debian_spdlog libspdlog-dev)
set(debian_yaml-cpp libyaml-cpp-dev)

# The packages of the find_dependency lines of tributary-config.cmake.in.
function(tributary_client_depends out)
  file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/tributary-config.cmake.in lines
    REGEX "^find_dependency")
  set(depends)
  foreach(line ${lines})
    string(REGEX REPLACE "^find_dependency\\(([A-Za-z_-]+).*" "\\1" name ${line})
    if(NOT debian_${name})
      message(FATAL_ERROR "cmake/TributaryPackages.cmake: which Debian package "
                          "holds ${name}? tributary-config.cmake.in needs it")
    endif()
    list(APPEND depends ${debian_${name}})
  endforeach()
  list(JOIN depends ", " depends)
  set(${out} ${depends} PARENT_SCOPE)
endfunction()

# Installs the files that Debian requires in every package: licence and changes.
function(tributary_package_documents package component)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/debian)
  configure_file(${PROJECT_SOURCE_DIR}/deploy/debian/copyright.in
    ${folder}/copyright @ONLY)
  install(FILES ${folder}/copyright ${folder}/changelog.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
endfunction()

function(tributary_changelog)
  set(changelog ${CMAKE_CURRENT_BINARY_DIR}/debian/changelog)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  configure_file(${PROJECT_SOURCE_DIR}/deploy/debian/changelog.in ${changelog} @ONLY)
  find_program(TRIBUTARY_GZIP gzip REQUIRED)
  execute_process(COMMAND ${TRIBUTARY_GZIP} -9nf ${changelog}
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()

tributary_changelog()
tributary_package_documents(tributary manual)
tributary_package_documents(libtributary-dev client)
tributary_package_documents(tributary-doc documents)

set(documents ${CMAKE_INSTALL_DATADIR}/doc/tributary)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md
  DESTINATION ${documents} COMPONENT documents)
install(DIRECTORY docs examples DESTINATION ${documents} COMPONENT documents
  PATTERN __pycache__ EXCLUDE)
install(DIRECTORY deploy/prometheus deploy/grafana
  DESTINATION ${documents}/deploy COMPONENT documents)
install(FILES python/README.md DESTINATION ${documents}/python COMPONENT documents)
install(DIRECTORY proto/tributary DESTINATION ${CMAKE_INSTALL_DATADIR}/tributary/proto
  COMPONENT client FILES_MATCHING PATTERN "*.proto")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tributary)
set(CPACK_PACKAGE_CONTACT ${TRIBUTARY_PACKAGE_MAINTAINER})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
  GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)  # compresses on all cores
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL programs manual client documents)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME tributary)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS "tributary-doc, dataset-fashion-mnist, openssh-client")
set(CPACK_DEBIAN_PROGRAMS_DESCRIPTION
"trains models on parameter servers over gRPC
Worker processes compute gradients on their share of the data and push them
to server processes, each of which holds a shard of the parameters. The same
job file can also train by all-reduce, or with the model split over several
processes. The final weights have the same bits in every run, whatever the
timing.
.
CUDA need not be installed. Programs that were built with it look for it when
they start.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libtributary-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
tributary_client_depends(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION
"parameter servers over gRPC: client library for C++
Headers, static libraries and a CMake package for C++ programs that talk to
the parameter servers of Tributary, and the protocol's proto files.")

set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_NAME tributary-doc)
set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOCUMENTS_DESCRIPTION
"parameter servers over gRPC: documents and examples
README, tutorial and reference of Tributary, example jobs with their data,
and Prometheus rules and a Grafana dashboard for watching a run.")

include(CPack)
cpack_add_component_group(programs)
cpack_add_component_group(library)
cpack_add_component_group(documents)
cpack_add_component(programs GROUP programs)
cpack_add_component(manual GROUP programs)
cpack_add_component(client GROUP library)
cpack_add_component(documents GROUP documents)
