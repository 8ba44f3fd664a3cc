# SPDX-License-Identifier: Apache-2.0
# Every package once, with the reason why it is here.
find_package(Threads REQUIRED)
find_package(absl REQUIRED CONFIG)       # status, locks with checked annotations
find_package(Protobuf REQUIRED)          # the wire and the job file's schema
find_package(gRPC REQUIRED CONFIG)       # transport
find_package(ZLIB REQUIRED)              # gzip data sets
find_package(OpenSSL REQUIRED)           # sha256 of the weights
find_package(yaml-cpp REQUIRED CONFIG)   # job files, with line numbers
find_package(nlohmann_json REQUIRED)     # metrics, summaries, safetensors headers
find_package(spdlog REQUIRED CONFIG)     # logs
find_package(CLI11 REQUIRED)             # command lines
find_package(Gloo REQUIRED CONFIG)       # collectives between worker processes
find_package(PkgConfig REQUIRED)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)  # CPU matrix products
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)  # HTTP for metrics
# The metrics' text format. By pkg-config: the CMake package also requires the
# dependencies of its other libraries.
pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
if(TRIBUTARY_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(TRIBUTARY_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED CONFIG)
endif()
