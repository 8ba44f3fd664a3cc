// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/range.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace tributary {

// Says that a number is out of range, or would be out of range as the float32
// in which it is used: " must be above 0, got 1e-50, which is 0 in float32".
// text: the number as it was written. Empty: it is in range.
std::string OutOfRange(const Range& range, double value, absl::string_view text,
                       bool of_bytes);

// The limits of a field of a job file that its type does not express.
struct FieldRule {
  absl::string_view field;  // "AdamSpec.beta1"
  Range range;
  bool required = false;
  const char* fallback = nullptr;  // as it would be written in the job file
  bool shorthand = false;  // a number in place of the message sets this field
};

constexpr Range Between(double min, double max) {
  return {.min = min, .max = max};
}

// An extent fits the 32-bit integers of BLAS.
constexpr Range kExtent = Between(1, 2147483647);
// Windows over images; a product of a few of these stays far below 2^63.
constexpr Range kSide = Between(1, 65536);
constexpr Range kPadding = Between(0, 65536);
// Token ids travel as float32, which holds every integer up to this one.
constexpr Range kTokens = Between(1, 1 << 24);

constexpr FieldRule Required(absl::string_view field, Range range = kAny) {
  return {.field = field, .range = range, .required = true};
}
constexpr FieldRule Default(absl::string_view field, const char* fallback,
                            Range range = kAny) {
  return {.field = field, .range = range, .fallback = fallback};
}
constexpr FieldRule Limits(absl::string_view field, Range range) {
  return {.field = field, .range = range};
}

// "AdamSpec.beta1", without the package.
absl::string_view RuleName(const google::protobuf::FieldDescriptor& field);

// True when the field has a value or, if it is a list, elements. A number or
// flag without presence has no value while it is 0 or false.
bool HasValue(const google::protobuf::Message& message,
              const google::protobuf::FieldDescriptor& field);

// Sets each field of `message` that has no value to its rule's scalar default,
// if there is one. Does not enter messages inside.
void FillDefaults(absl::Span<const FieldRule> rules,
                  google::protobuf::Message* message);

// InvalidArgument: a number of `message` is OutOfRange by its rule, "out must
// be at least 1, got 0". Does not enter messages inside.
absl::Status CheckRanges(absl::Span<const FieldRule> rules,
                         const google::protobuf::Message& message);

}  // namespace tributary
