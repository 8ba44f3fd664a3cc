# SPDX-License-Identifier: Apache-2.0
# CUDA kernels take half as long to build as everything else, so a build has them only
# where they can run or are tested.
#   TRIBUTARY_CUDA  AUTO (default): with nvcc, and an NVIDIA device or the tests
#                   ON: a missing nvcc is an error | OFF
#   CMAKE_CUDA_ARCHITECTURES  default: AUTO builds for this machine's devices, or for
#                   90 without one; ON builds for 80 and 90
#   TRIBUTARY_HAVE_CUDA  the outcome, read by kernels/CMakeLists.txt
set(TRIBUTARY_CUDA AUTO CACHE STRING "AUTO, ON or OFF")
set(TRIBUTARY_HAVE_CUDA OFF)
if(TRIBUTARY_CUDA STREQUAL "OFF" OR TRIBUTARY_SANITIZE)
  message(STATUS "CUDA: left out")
  return()
endif()
file(GLOB devices /dev/nvidia[0-9]*)
if(TRIBUTARY_CUDA STREQUAL "AUTO" AND NOT devices AND NOT TRIBUTARY_BUILD_TESTS)
  message(STATUS "CUDA: left out, because this machine has no NVIDIA device; "
                 "-DTRIBUTARY_CUDA=ON builds the kernels all the same")
  return()
endif()

if(NOT CMAKE_CUDA_ARCHITECTURES)
  if(TRIBUTARY_CUDA STREQUAL "ON")
    set(CMAKE_CUDA_ARCHITECTURES 80 90)
  elseif(devices)
    set(CMAKE_CUDA_ARCHITECTURES native)
  else()
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
endif()
if(NOT CMAKE_CUDA_COMPILER)
  find_program(TRIBUTARY_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(TRIBUTARY_NVCC)
    set(CMAKE_CUDA_COMPILER ${TRIBUTARY_NVCC})
  endif()
endif()

# Checked only if there is an nvcc: otherwise CMake would use clang++ instead.
if(CMAKE_CUDA_COMPILER)
  include(CheckLanguage)
  check_language(CUDA)
endif()
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  # CMake 3.25.1 does not know that nvcc supports C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA_STANDARD 20)
  # ccache does not read a path from CMake's own form, -isystem=, and would miss in
  # every other clone.
  set(CMAKE_INCLUDE_SYSTEM_FLAG_CUDA "-isystem ")
  find_package(CUDAToolkit REQUIRED)
  set(TRIBUTARY_HAVE_CUDA ON)
  message(STATUS "CUDA ${CUDAToolkit_VERSION}: building kernels for "
                 "${CMAKE_CUDA_ARCHITECTURES}")
elseif(TRIBUTARY_CUDA STREQUAL "ON")
  message(FATAL_ERROR "TRIBUTARY_CUDA=ON but no CUDA compiler was found; "
                      "put nvcc on PATH or set CMAKE_CUDA_COMPILER")
else()
  message(STATUS "CUDA: no compiler found, building for the CPU alone")
endif()
