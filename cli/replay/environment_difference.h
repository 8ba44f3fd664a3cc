// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tributary {

// A difference between the environments in which two runs were computed, as
// environment.json records them.
struct EnvironmentDifference {
  enum class Kind {
    kData,            // samples: numbers of rows, checksums
    kInitialWeights,  // the file of model.initialize_from
    kVersion,         // of Tributary, a library or the compiler
    kArithmetic,      // of a rank: libraries, kernels, threads of the BLAS
    kProcessor,       // its name, its instruction sets
    kProcessors,      // their number, which affects no result
  };
  Kind kind = Kind::kData;
  std::string what;  // "version of protobuf", "training data"
  std::string a;     // empty: not recorded
  std::string b;

  // Whether the weights may depend on what differs.
  bool matters() const { return kind != Kind::kProcessors; }
};

// "data", "initial_weights", "version", "arithmetic", "processor",
// "processors".
const char* KindName(EnvironmentDifference::Kind kind);

// Lists the differences that matter, separated by semicolons: "version of
// protobuf is 3.21 and 4.25"; empty: there are none.
std::string CauseText(const std::vector<EnvironmentDifference>& differences);

// The differences in the order of Kind. A value that only one of the two has
// recorded is left out: it is unknown whether it differs. A run without
// environment.json has an empty object.
std::vector<EnvironmentDifference> EnvironmentDifferences(
    const nlohmann::json& a, const nlohmann::json& b);

}  // namespace tributary
