# SPDX-License-Identifier: Apache-2.0
# Headers that most sources include are parsed once for each build, if
# TRIBUTARY_PRECOMPILE is on. Only a build without it (the preset dev) notices that a
# source lacks one of these includes.

# Some packages add these options, which all users of the header must share.
set(TRIBUTARY_PRECOMPILED_OPTIONS -pthread)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # ccache wants to see it
  list(APPEND TRIBUTARY_PRECOMPILED_OPTIONS -fpch-preprocess)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # a path that ccache makes relative
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include <PCH_HEADER>)
endif()

# tributary_precompile(NAME LIBRARY|EXECUTABLE HEADERS ... DEPS ...): headers for targets
# of that type with the options of the calling folder: GCC wants these to agree.
function(tributary_precompile name type)
  if(NOT TRIBUTARY_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPS" ${ARGN})
  set(empty ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  file(GENERATE OUTPUT ${empty} CONTENT "int main() {}\n")
  if(type STREQUAL "LIBRARY")
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${empty})
  else()
    add_executable(${name} EXCLUDE_FROM_ALL ${empty})
  endif()
  target_compile_options(${name} PRIVATE ${TRIBUTARY_PRECOMPILED_OPTIONS})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set_target_properties(${name} PROPERTIES
      CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/precompile)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# tributary_use_precompiled(TARGET NAME): compiles TARGET with the headers of NAME; does
# nothing if NAME is not a target.
function(tributary_use_precompiled target name)
  if(TARGET ${name})
    target_precompile_headers(${target} REUSE_FROM ${name})
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:${TRIBUTARY_PRECOMPILED_OPTIONS}>)
  endif()
endfunction()
