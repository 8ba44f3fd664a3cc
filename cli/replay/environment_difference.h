// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tributary {

// Something that two runs were computed with, by environment.json, and that is
// not the same in both.
struct EnvironmentDifference {
  enum class Kind {
    kData,            // samples: numbers of rows, checksums
    kInitialWeights,  // the file of model.initialize_from
    kVersion,         // of Tributary, a library or the compiler
    kArithmetic,      // of a rank: libraries, kernels, threads of the BLAS
    kProcessor,       // its name, its instruction sets
    kProcessors,      // their number, on which no result depends
  };
  Kind kind = Kind::kData;
  std::string what;  // "version of protobuf", "training data"
  std::string a;     // empty: not recorded
  std::string b;

  // Whether the weights may depend on it.
  bool matters() const { return kind != Kind::kProcessors; }
};

// "data", "initial_weights", "version", "arithmetic", "processor",
// "processors".
const char* KindName(EnvironmentDifference::Kind kind);

// "version of protobuf is 3.21 and 4.25": the differences that matter, with
// semicolons between them; empty: there are none.
std::string CauseText(const std::vector<EnvironmentDifference>& differences);

// In the order of Kind. What only one of the two has recorded is left out: it
// is unknown whether it differs. Empty objects are of runs without the file.
std::vector<EnvironmentDifference> EnvironmentDifferences(
    const nlohmann::json& a, const nlohmann::json& b);

}  // namespace tributary
