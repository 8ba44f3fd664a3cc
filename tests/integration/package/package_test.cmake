# SPDX-License-Identifier: Apache-2.0
# Installs BUILD_DIR into a fresh prefix and uses it as another project would.
# cmake -DBUILD_DIR=... -DWORK_DIR=... -DPROGRAMS=... -P package_test.cmake
set(prefix ${WORK_DIR}/prefix)
file(REMOVE_RECURSE ${WORK_DIR})

function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN} ended with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
foreach(program ${PROGRAMS})
  run(${prefix}/bin/${program} --help)
endforeach()

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK_DIR}/build
    -G Ninja -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer)
if(NOT output MATCHES "127.0.0.1:1")
  message(FATAL_ERROR "the error does not name the server: ${output}")
endif()
message(STATUS "${output}")
