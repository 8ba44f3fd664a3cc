#pragma once

#include <limits>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"

namespace tributary {

// Numbers that a field takes. Infinite ends are open by nature.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is excluded
  bool below_max = false;

  bool Contains(double value) const {
    return (above_min ? value > min : value >= min) &&
           (below_max ? value < max : value <= max);
  }
  // "at least 0 and below 1"; of bytes, "at least 1KiB and at most 1GiB".
  std::string Text(bool of_bytes) const;
};

// What the type of a field of job.proto cannot say.
struct FieldRule {
  absl::string_view field;  // "AdamSpec.beta1"
  Range range;
  bool required = false;
  const char* fallback = nullptr;  // as it would be written in the job file
  bool shorthand = false;  // a number for the whole message stands for this
};

// Every number of the schema has its rule, so that no range is forgotten.
absl::Span<const FieldRule> AllFieldRules();

// The rule of a field, or nullptr: then any value is good and none is needed.
const FieldRule* FieldRuleOf(const google::protobuf::FieldDescriptor& field);

// The field that a number for the whole message stands for, or nullptr.
const google::protobuf::FieldDescriptor* ShorthandOf(
    const google::protobuf::Descriptor& type);

// "AdamSpec.beta1", without the package.
absl::string_view RuleName(const google::protobuf::FieldDescriptor& field);

}  // namespace tributary
