// SPDX-License-Identifier: Apache-2.0
#include "common/job/job_difference.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/schema/scalar_text.h"
#include "google/protobuf/message.h"

namespace tributary {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Values = std::map<std::string, std::string>;

void AddValues(const std::string& prefix, const Message& message,
               Values* values);

// `index`: the position within a repeated field, or -1 for any other field.
void AddValue(const std::string& key, const Message& message,
              const FieldDescriptor* field, int index, Values* values) {
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    (*values)[key] = ScalarText(message, field, index);
    return;
  }
  const auto& reflection = *message.GetReflection();
  const Message& inner =
      index < 0 ? reflection.GetMessage(message, field)
                : reflection.GetRepeatedMessage(message, field, index);
  const size_t before = values->size();
  AddValues(key + ".", inner, values);
  if (values->size() == before) (*values)[key] = "{}";
}

void AddValues(const std::string& prefix, const Message& message,
               Values* values) {
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string key = prefix + field->name();
    if (!field->is_repeated()) {
      AddValue(key, message, field, -1, values);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      AddValue(absl::StrCat(key, ".", i), message, field, i, values);
    }
  }
}

bool Matters(absl::string_view key) {
  constexpr std::array<absl::string_view, 10> kWithoutEffect = {
      "name",
      "checkpoint.",
      "trace.",
      "evaluation.",
      "training.divergence",
      "cluster.servers",
      "cluster.on_worker_loss",
      "cluster.max_restarts",
      "cluster.lease_seconds",
      "strategy.parameter_server.transport"};
  for (const absl::string_view prefix : kWithoutEffect) {
    if (absl::StartsWith(key, prefix)) return false;
  }
  return !absl::EndsWith(key, "bucket_bytes") &&
         !absl::EndsWith(key, "timeout_seconds");
}

bool OnlyEvaluates(absl::string_view key) {
  return absl::StartsWith(key, "data.test") ||
         absl::StartsWith(key, "data.validation.source");
}

bool NamesData(absl::string_view key) {
  if (!absl::StartsWith(key, "data.train.")) return false;
  constexpr std::array<absl::string_view, 4> kFiles = {
      ".path.", ".images.", ".labels.", ".features."};
  return std::any_of(
      kFiles.begin(), kFiles.end(),
      [key](absl::string_view name) { return absl::StrContains(key, name); });
}

}  // namespace

std::vector<JobDifference> JobDifferences(const v1::JobSpec& a,
                                          const v1::JobSpec& b) {
  Values of_a, of_b;
  AddValues("", a, &of_a);
  AddValues("", b, &of_b);
  std::set<std::string> keys;
  for (const Values* values : {&of_a, &of_b}) {
    for (const auto& [key, value] : *values) keys.insert(key);
  }
  std::vector<JobDifference> differences;
  for (const std::string& key : keys) {
    if (of_a[key] == of_b[key] || OnlyEvaluates(key)) continue;
    differences.push_back({.key = key,
                           .a = of_a[key],
                           .b = of_b[key],
                           .matters = Matters(key),
                           .names_data = NamesData(key)});
  }
  return differences;
}

}  // namespace tributary
