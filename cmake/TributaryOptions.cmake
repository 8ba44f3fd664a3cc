# SPDX-License-Identifier: Apache-2.0
# Options of every target: language, warnings, sanitizers.
option(TRIBUTARY_BUILD_TESTS "Build the tests" ON)
option(TRIBUTARY_BUILD_BENCHMARKS "Build the benchmarks" OFF)
option(TRIBUTARY_WERROR "Treat warnings as errors" OFF)
option(TRIBUTARY_MERGE "Compile the sources of a room together, with CMAKE_UNITY_BUILD"
  ${CMAKE_UNITY_BUILD})
option(TRIBUTARY_PRECOMPILE "Parse what most sources include once" OFF)
set(TRIBUTARY_SANITIZE "" CACHE STRING "address (with undefined) or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

find_program(TRIBUTARY_CCACHE ccache)
if(TRIBUTARY_CCACHE)
  # A clone in another folder finds the same objects. ccache requires the sloppiness to
  # use precompiled headers at all.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=true CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_PCH_EXTSUM=true ${TRIBUTARY_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
  # Assertions contain the names of their files.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
endif()

find_program(TRIBUTARY_LLD ld.lld)
if(TRIBUTARY_LLD)
  add_link_options(-fuse-ld=lld)  # four times faster than bfd
endif()

# Contraction into fused multiply-adds is a choice of the compiler and would
# make the weights depend on the instruction set (docs/consistency.md).
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# An Options that names some of its fields leaves the others to their defaults.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
# GCC 12 takes "text" + std::string for an overlapping copy (bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION
   VERSION_LESS 13)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(TRIBUTARY_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror=thread-safety>)
endif()

# GCC starts garbage collection at a heap of 128 MiB or less, which takes up to a sixth
# of a large source's time. Without it, a compiler takes 160 to 300 MiB more memory.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=2097152>")
endif()

if(TRIBUTARY_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer
                      -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # the same objects for tests/fuzz
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
elseif(TRIBUTARY_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(TRIBUTARY_SANITIZE)
  message(FATAL_ERROR "TRIBUTARY_SANITIZE is address or thread, "
                      "got ${TRIBUTARY_SANITIZE}")
endif()
