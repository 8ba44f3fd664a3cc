# SPDX-License-Identifier: Apache-2.0
# One function per kind of target. DEPS is the architecture: a folder sees what
# its target links and nothing else (.ci/layers checks the includes too).
include(GNUInstallDirs)
include(GoogleTest)
include(TributaryPrecompiled)

# tributary_library(NAME HDRS ... SRCS ... DEPS ... [PRIVATE_DEPS ...] [ALONE])
# HDRS are relative to the calling folder and are included from the root. With
# TRIBUTARY_MERGE, tributary_merge compiles the sources, together with those of other
# libraries. ALONE: its sources have options of their own, so they stay apart.
function(tributary_library name)
  cmake_parse_arguments(ARG "ALONE" "" "HDRS;SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" room ${folder})
  set(scope INTERFACE)
  if(ARG_SRCS AND TRIBUTARY_MERGE AND NOT ARG_ALONE AND NOT room STREQUAL "tests")
    add_library(${name} INTERFACE)
    list(TRANSFORM ARG_SRCS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/
      REGEX "^[^/]")
    set_property(GLOBAL APPEND PROPERTY TRIBUTARY_MERGED ${name})
    set_target_properties(${name} PROPERTIES TRIBUTARY_ROOM ${room}
      TRIBUTARY_SOURCES "${ARG_SRCS}" TRIBUTARY_PRIVATE_DEPS "${ARG_PRIVATE_DEPS}")
  elseif(ARG_SRCS)
    add_library(${name} STATIC ${ARG_SRCS})
    set(scope PUBLIC)
    target_link_libraries(${name} PRIVATE ${ARG_PRIVATE_DEPS})
    tributary_use_precompiled(${name} "${TRIBUTARY_LIBRARY_HEADERS}")
  else()
    add_library(${name} INTERFACE)
  endif()
  add_library(tributary::${name} ALIAS ${name})
  target_sources(${name} ${scope} FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HDRS})
  target_include_directories(${name} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tributary>)
  target_link_libraries(${name} ${scope} ${ARG_DEPS})
  target_compile_features(${name} ${scope} cxx_std_20)
endfunction()

# Appends a target's libraries of this project, and theirs, to the list `out`.
function(tributary_library_closure target out)
  set(closure ${${out}})
  if(target IN_LIST closure)
    return()
  endif()
  list(APPEND closure ${target})
  get_target_property(type ${target} TYPE)
  set(property INTERFACE_LINK_LIBRARIES)
  if(type STREQUAL "EXECUTABLE")
    set(property LINK_LIBRARIES)
  endif()
  get_target_property(dependencies ${target} ${property})
  get_target_property(private_dependencies ${target} TRIBUTARY_PRIVATE_DEPS)
  foreach(dependency ${dependencies} ${private_dependencies})
    if(dependency MATCHES "^(\\$<LINK_ONLY:)?(tributary_[a-z_]+)>?$")
      tributary_library_closure(${CMAKE_MATCH_2} closure)
    endif()
  endforeach()
  set(${out} ${closure} PARENT_SCOPE)
endfunction()

# tributary_merge(PROGRAMS target ... INSTALLED target ...)
# Compiles the sources of many libraries together: most of the time of a source goes
# into the headers that it shares with its neighbours. The libraries of a room that the
# programs need are one archive, tributary_merged_ROOM. What INSTALLED libraries are
# built on is an archive of its own (client), and so is what no program needs (rest).
function(tributary_merge)
  cmake_parse_arguments(ARG "" "" "PROGRAMS;INSTALLED" ${ARGN})
  set(needed)
  foreach(program ${ARG_PROGRAMS})
    tributary_library_closure(${program} needed)
  endforeach()
  set(installed)
  foreach(library ${ARG_INSTALLED})
    tributary_library_closure(${library} installed)
  endforeach()

  get_property(libraries GLOBAL PROPERTY TRIBUTARY_MERGED)
  set(merged)
  foreach(library ${libraries})
    get_target_property(room ${library} TRIBUTARY_ROOM)
    if(library IN_LIST installed)
      set(room client)
    elseif(NOT library IN_LIST needed)
      set(room rest)
    endif()
    set(archive tributary_merged_${room})
    list(APPEND merged ${archive})
    list(APPEND ${archive} ${library})
    set(archive_of_${library} ${archive})
  endforeach()

  list(REMOVE_DUPLICATES merged)
  foreach(archive ${merged})
    set(sources)
    set(deps)
    foreach(library ${${archive}})
      get_target_property(library_sources ${library} TRIBUTARY_SOURCES)
      get_target_property(public_deps ${library} INTERFACE_LINK_LIBRARIES)
      get_target_property(private_deps ${library} TRIBUTARY_PRIVATE_DEPS)
      list(APPEND sources ${library_sources})
      foreach(dep ${public_deps} ${private_deps})
        if(dep AND archive_of_${dep})
          set(dep ${archive_of_${dep}})
        endif()
        if(dep AND NOT dep STREQUAL archive)
          list(APPEND deps ${dep})
        endif()
      endforeach()
    endforeach()
    list(REMOVE_DUPLICATES deps)
    add_library(${archive} STATIC ${sources})
    set_target_properties(${archive} PROPERTIES UNITY_BUILD_BATCH_SIZE 20)
    target_include_directories(${archive} PRIVATE
      ${PROJECT_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
    target_link_libraries(${archive} PUBLIC ${deps})
    string(REPLACE tributary_merged_ "" room ${archive})
    if(room IN_LIST TRIBUTARY_UNHURRIED_ROOMS)
      target_compile_options(${archive} PRIVATE -O0)
      tributary_use_precompiled(${archive} tributary_unhurried_headers)
    else()
      tributary_use_precompiled(${archive} "${TRIBUTARY_LIBRARY_HEADERS}")
    endif()
  endforeach()
  foreach(library ${libraries})
    target_link_libraries(${library} INTERFACE ${archive_of_${library}})
  endforeach()
endfunction()

# tributary_name_list(OUTPUT MACRO FILE...): a generated header at OUTPUT with a
# line MACRO(AddPositionEmbedding) for kinds/position_embedding.cc and so on. Each
# of these files puts itself into a table, so that no list has to be edited.
function(tributary_name_list output macro)
  set(lines "")
  foreach(file ${ARGN})
    get_filename_component(words ${file} NAME_WE)
    string(REPLACE "_" ";" words ${words})
    set(name Add)
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND name ${first}${rest})
    endforeach()
    string(APPEND lines "${macro}(${name})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${output}
    CONTENT "${lines}")
endfunction()

# tributary_type_list(OUTPUT MACRO FILE...): a generated header at OUTPUT that includes
# the headers FILE, paths from the root, and defines MACRO as the list of their types:
# `Adagrad` for adagrad.h.
function(tributary_type_list output macro)
  set(includes "")
  set(types "")
  foreach(file ${ARGN})
    get_filename_component(word ${file} NAME_WE)
    string(SUBSTRING ${word} 0 1 first)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOUPPER ${first} first)
    string(APPEND includes "#include \"${file}\"\n")
    list(APPEND types ${first}${rest})
  endforeach()
  list(JOIN types ", " types)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${output}
    CONTENT "#pragma once\n${includes}#define ${macro} ${types}\n")
endfunction()

# tributary_executable(NAME SRCS ... DEPS ...)
function(tributary_executable name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

# Lets the thread sanitizer see absl::Mutex (tests/testing/tsan_locks.cc).
function(tributary_show_locks name)
  target_sources(${name} PRIVATE
    ${PROJECT_SOURCE_DIR}/tests/testing/tsan_locks.cc)
  foreach(symbol
      _ZN4absl7debian35Mutex4LockEv
      _ZN4absl7debian35Mutex6UnlockEv
      _ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE
      _ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE
      _ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE
      _ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE
      _ZN4absl7debian312Notification6NotifyEv
      _ZNK4absl7debian312Notification19WaitForNotificationEv
      _ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE)
    target_link_options(${name} PRIVATE LINKER:--wrap=${symbol})
  endforeach()
  target_link_libraries(${name} PRIVATE absl::synchronization)
endfunction()

# Adds TARGET to the targets that build the tests of a label (tests_LABEL) and of each
# folder around them (tests_in_server, tests_in_server_store).
function(tributary_collect_test target room labels)
  set(groups ${labels})
  list(TRANSFORM groups PREPEND tests_)
  set(folder tests_in)
  string(REPLACE "/" ";" names ${room})
  foreach(name ${names})
    string(APPEND folder _${name})
    list(APPEND groups ${folder})
  endforeach()
  foreach(group ${groups})
    if(NOT TARGET ${group})
      add_custom_target(${group})
    endif()
    add_dependencies(${group} ${target})
  endforeach()
endfunction()

# tributary_test(NAME SRCS ... DEPS ... [LABELS unit|integration|race ...]
#                [COST seconds] [PROGRAMS target ...] [ALONE])
# LABELS race marks tests that the thread sanitizer runs. The folder below tests/ or
# tests/unit/ is a label, too (tests/room.sh). PROGRAMS: those that it starts. COST is
# about what the longest test takes under a sanitizer (default 60); tests of a high cost
# start first. The timeout is long: it is for tests that hang, not for a busy machine.
# With TRIBUTARY_MERGE the unit tests of a room (worker, common, ...) are one program,
# which tributary_merge_tests makes. Not merged are tests for the thread sanitizer, and
# tests marked ALONE, because they replace functions of the C library or are packed by
# name. Under a sanitizer the unit tests of a program run in one process, because
# starting and checking 2,000 processes takes longer than the tests.
function(tributary_test name)
  cmake_parse_arguments(ARG "ALONE" "COST;ROOM" "SRCS;DEPS;LABELS;PROGRAMS" ${ARGN})
  if(NOT ARG_COST)
    set(ARG_COST 60)
  endif()
  math(EXPR timeout "3 * ${ARG_COST} + 120")
  set(room ${ARG_ROOM})
  if(NOT room)
    file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
    string(REGEX REPLACE "^unit/" "" room ${room})
  endif()
  if(TRIBUTARY_MERGE AND ARG_LABELS STREQUAL "unit" AND NOT ARG_ALONE)
    string(REGEX REPLACE "/.*" "" top ${room})
    list(TRANSFORM ARG_SRCS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    set_property(GLOBAL APPEND PROPERTY TRIBUTARY_MERGED_TESTS ${top})
    set_property(GLOBAL APPEND PROPERTY TRIBUTARY_TEST_SOURCES_${top} ${ARG_SRCS})
    set_property(GLOBAL APPEND PROPERTY TRIBUTARY_TEST_DEPS_${top} ${ARG_DEPS})
    return()
  endif()
  set(labels ${ARG_LABELS} ${room})
  add_executable(${name} ${ARG_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} tributary_testing_paths
    GTest::gmock GTest::gtest GTest::gtest_main)
  tributary_use_precompiled(${name} tributary_test_headers)
  if(TRIBUTARY_SANITIZE STREQUAL "thread")
    tributary_show_locks(${name})
  endif()
  # Jobs of tests are not registered among those of the user.
  set(environment XDG_STATE_HOME=${CMAKE_BINARY_DIR}/state)
  if(TRIBUTARY_SANITIZE AND "unit" IN_LIST ARG_LABELS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${labels}"
      TIMEOUT 1200 ENVIRONMENT ${environment})
  else()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT ${timeout} COST ${ARG_COST} ENVIRONMENT ${environment})
    # PROPERTIES cannot carry a list, so several labels are set by a script that
    # ctest reads after it has found the tests.
    set(script ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
    file(GENERATE OUTPUT ${script} CONTENT "if(${name}_TESTS)
  set_tests_properties(\${${name}_TESTS} PROPERTIES LABELS \"${labels}\")
endif()
")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
  endif()
  if(ARG_PROGRAMS)
    add_dependencies(${name} ${ARG_PROGRAMS})
  endif()
  tributary_collect_test(${name} ${room} "${ARG_LABELS}")
endfunction()

# The programs of the unit tests that tributary_test has left to their rooms.
function(tributary_merge_tests)
  get_property(rooms GLOBAL PROPERTY TRIBUTARY_MERGED_TESTS)
  list(REMOVE_DUPLICATES rooms)
  foreach(room ${rooms})
    get_property(sources GLOBAL PROPERTY TRIBUTARY_TEST_SOURCES_${room})
    get_property(deps GLOBAL PROPERTY TRIBUTARY_TEST_DEPS_${room})
    list(REMOVE_DUPLICATES deps)
    tributary_test(${room}_unit_tests SRCS ${sources} DEPS ${deps} LABELS unit
      ROOM ${room} ALONE)
    set_target_properties(${room}_unit_tests PROPERTIES UNITY_BUILD_BATCH_SIZE 20)
  endforeach()
endfunction()

# tributary_fuzzer(NAME DEPS ...): NAME.cc with libFuzzer's main under clang's address
# sanitizer; the target `fuzzers` builds them all. A test puts in each file of
# corpus/NAME once, in every build.
function(tributary_fuzzer name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  tributary_executable(${name} SRCS ${name}.cc DEPS ${ARG_DEPS})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
  if(TRIBUTARY_SANITIZE STREQUAL "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME replay_${name} COMMAND ${name} -runs=0 ${corpus})
    if(NOT TARGET fuzzers)
      add_custom_target(fuzzers)
    endif()
    add_dependencies(fuzzers ${name})
  else()
    target_sources(${name} PRIVATE replay.cc)
    add_test(NAME replay_${name} COMMAND ${name} ${corpus})
  endif()
  set_tests_properties(replay_${name} PROPERTIES LABELS unit TIMEOUT 300)
  tributary_collect_test(${name} fuzz unit)
endfunction()

# tributary_proto(NAME [PROTOS ...] [SERVICES ...] [DEPS ...]): generated code at proto/
# paths, with that of gRPC for the files that define services.
function(tributary_proto name)
  cmake_parse_arguments(ARG "" "" "PROTOS;SERVICES;DEPS" ${ARGN})
  set(generated ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${generated})
  find_program(TRIBUTARY_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
  set(sources)
  foreach(proto ${ARG_SERVICES} ${ARG_PROTOS})
    get_filename_component(stem ${proto} NAME_WE)
    get_filename_component(folder ${proto} DIRECTORY)
    set(base ${generated}/${folder}/${stem})
    set(outputs ${base}.pb.cc ${base}.pb.h)
    set(grpc_arguments)
    if(proto IN_LIST ARG_SERVICES)
      list(APPEND outputs ${base}.grpc.pb.cc ${base}.grpc.pb.h)
      set(grpc_arguments --grpc_out=${generated}
        --plugin=protoc-gen-grpc=${TRIBUTARY_GRPC_PLUGIN})
    endif()
    add_custom_command(OUTPUT ${outputs}
      COMMAND protobuf::protoc --cpp_out=${generated} ${grpc_arguments}
              -I ${CMAKE_CURRENT_SOURCE_DIR}
              ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
      VERBATIM)
    list(APPEND sources ${outputs})
  endforeach()
  add_library(${name} STATIC ${sources})
  add_library(tributary::${name} ALIAS ${name})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  # Generated code handles small messages; optimizing it takes longer than it saves.
  target_compile_options(${name} PRIVATE -w $<$<CONFIG:Release>:-O1>)
  if(TRIBUTARY_SANITIZE STREQUAL "address")
    target_compile_options(${name} PRIVATE -O0 -fno-sanitize=undefined)
  endif()
  target_include_directories(${name} SYSTEM PUBLIC
    $<BUILD_INTERFACE:${generated}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tributary>)
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf ${ARG_DEPS})
  if(ARG_SERVICES)
    target_link_libraries(${name} PUBLIC gRPC::grpc++)
  endif()
endfunction()
