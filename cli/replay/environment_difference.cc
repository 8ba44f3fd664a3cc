// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/environment_difference.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tributary {
namespace {

using nlohmann::json;
using Kind = EnvironmentDifference::Kind;

// Returns the value at a path of keys; null if there is none.
const json& At(const json& object, const std::vector<std::string>& path) {
  static const json none;
  const json* at = &object;
  for (const std::string& key : path) {
    const auto found = at->is_object() ? at->find(key) : at->end();
    if (found == at->end()) return none;
    at = &*found;
  }
  return *at;
}

bool IsRecorded(const json& value) { return !value.is_null() && value != ""; }

std::string Text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> items;
  for (const json& item : value) items.push_back(Text(item));
  return absl::StrJoin(items, " ");
}

// Leaves in each text only the parts that the other does not have: the names of
// libraries and kernels are long, and two texts are mostly equal.
void KeepWhatDiffers(std::string* a, std::string* b) {
  const std::vector<std::string> of_a = absl::StrSplit(*a, ", ");
  const std::vector<std::string> of_b = absl::StrSplit(*b, ", ");
  const auto only = [](const std::vector<std::string>& parts,
                       const std::vector<std::string>& others) {
    std::vector<std::string> kept;
    std::copy_if(parts.begin(), parts.end(), std::back_inserter(kept),
                 [&](const std::string& part) {
                   return std::find(others.begin(), others.end(), part) ==
                          others.end();
                 });
    return absl::StrJoin(kept, ", ");
  };
  const std::string kept_a = only(of_a, of_b), kept_b = only(of_b, of_a);
  if (kept_a.empty() || kept_b.empty()) return;
  *a = kept_a;
  *b = kept_b;
}

class Comparison {
 public:
  Comparison(const json& a, const json& b) : a_(a), b_(b) {}

  void Compare(Kind kind, const std::string& what,
               const std::vector<std::string>& path) {
    Add(kind, what, At(a_, path), At(b_, path));
  }

  void CompareData(const std::string& what, const std::string& set) {
    const json& a = At(a_, {"data", set});
    const json& b = At(b_, {"data", set});
    if (a.is_null() || b.is_null()) return;
    if (At(a, {"rows"}) != At(b, {"rows"})) {
      Add(Kind::kData, absl::StrCat("number of rows of the ", what),
          At(a, {"rows"}), At(b, {"rows"}));
    } else {
      Add(Kind::kData, absl::StrCat("checksum of the ", what),
          At(a, {"checksum"}), At(b, {"checksum"}));
    }
  }

  void CompareVersions() {
    std::set<std::string> names;
    for (const json* side : {&a_, &b_}) {
      const json& versions = At(*side, {"versions"});
      if (!versions.is_object()) continue;
      for (const auto& [name, value] : versions.items()) names.insert(name);
    }
    for (const std::string& name : names) {
      Compare(Kind::kVersion, absl::StrCat("version of ", name),
              {"versions", name});
    }
  }

  // Compares rank by rank, up to the first rank that differs.
  void CompareArithmetic() {
    const json& a = At(a_, {"ranks"});
    const json& b = At(b_, {"ranks"});
    if (!a.is_array() || !b.is_array()) return;
    for (size_t rank = 0; rank < std::min(a.size(), b.size()); ++rank) {
      const json& of_a = At(a[rank], {"arithmetic"});
      const json& of_b = At(b[rank], {"arithmetic"});
      if (!IsRecorded(of_a) || !IsRecorded(of_b) || of_a == of_b) continue;
      Add(Kind::kArithmetic, absl::StrCat("arithmetic of rank ", rank), of_a,
          of_b);
      EnvironmentDifference& added = found_.back();
      KeepWhatDiffers(&added.a, &added.b);
      return;
    }
  }

  std::vector<EnvironmentDifference> found() { return std::move(found_); }

 private:
  void Add(Kind kind, const std::string& what, const json& a, const json& b) {
    if (!IsRecorded(a) || !IsRecorded(b) || a == b) return;
    found_.push_back({kind, what, Text(a), Text(b)});
  }

  const json& a_;
  const json& b_;
  std::vector<EnvironmentDifference> found_;
};

}  // namespace

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kData:
      return "data";
    case Kind::kInitialWeights:
      return "initial_weights";
    case Kind::kVersion:
      return "version";
    case Kind::kArithmetic:
      return "arithmetic";
    case Kind::kProcessor:
      return "processor";
    case Kind::kProcessors:
      return "processors";
  }
  return "unknown";
}

std::string CauseText(const std::vector<EnvironmentDifference>& differences) {
  std::vector<std::string> clauses;
  for (const EnvironmentDifference& difference : differences) {
    if (!difference.matters()) continue;
    clauses.push_back(absl::StrCat(difference.what, " is ", difference.a,
                                   " and ", difference.b));
  }
  return absl::StrJoin(clauses, "; ");
}

std::vector<EnvironmentDifference> EnvironmentDifferences(const json& a,
                                                          const json& b) {
  Comparison compare(a, b);
  compare.CompareData("training data", "train");
  compare.CompareData("validation data", "validation");
  compare.CompareData("test data", "test");
  compare.Compare(Kind::kInitialWeights, "checksum of the initial weights",
                  {"data", "initial_weights", "checksum"});
  compare.CompareVersions();
  compare.CompareArithmetic();
  compare.Compare(Kind::kProcessor, "processor", {"machine", "processor"});
  compare.Compare(Kind::kProcessor, "instruction sets",
                  {"machine", "instruction_sets"});
  compare.Compare(Kind::kProcessors, "number of processors",
                  {"machine", "processors"});
  return compare.found();
}

}  // namespace tributary
