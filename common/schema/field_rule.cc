// SPDX-License-Identifier: Apache-2.0
#include "common/schema/field_rule.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/schema/scalar_text.h"

namespace tributary {
namespace {

// Writes counts in full: 2147483647 rather than 2.147483647e+09.
std::string BoundText(double bound, bool of_bytes) {
  if (of_bytes) return BytesText(static_cast<uint64_t>(bound));
  return bound == std::floor(bound) && std::abs(bound) < 1e16
             ? absl::StrCat(static_cast<int64_t>(bound))
             : NumberText(bound);
}

bool IsNumber(const google::protobuf::FieldDescriptor& field) {
  using Field = google::protobuf::FieldDescriptor;
  return field.cpp_type() == Field::CPPTYPE_INT32 ||
         field.cpp_type() == Field::CPPTYPE_INT64 ||
         field.cpp_type() == Field::CPPTYPE_UINT64 ||
         field.cpp_type() == Field::CPPTYPE_DOUBLE;
}

const FieldRule* Find(absl::Span<const FieldRule> rules,
                      const google::protobuf::FieldDescriptor& field) {
  for (const FieldRule& rule : rules) {
    if (rule.field == RuleName(field)) return &rule;
  }
  return nullptr;
}

// "at least 0 and below 1"; of bytes, "at least 1KiB and at most 1GiB".
std::string RangeText(const Range& range, bool of_bytes) {
  std::string text;
  if (std::isfinite(range.min)) {
    text = absl::StrCat(range.above_min ? "above " : "at least ",
                        BoundText(range.min, of_bytes));
  }
  if (std::isfinite(range.max)) {
    absl::StrAppend(&text, text.empty() ? "" : " and ",
                    range.below_max ? "below " : "at most ",
                    BoundText(range.max, of_bytes));
  }
  return text;
}

}  // namespace

bool HasValue(const google::protobuf::Message& message,
              const google::protobuf::FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  return field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field);
}

std::string OutOfRange(const Range& range, double value, absl::string_view text,
                       bool of_bytes) {
  // Only an excluded end can be reached by rounding to float32: an end that
  // belongs to the range is a number of float32 itself.
  const float rounded = static_cast<float>(value);
  const bool rounds_away =
      (range.above_min && std::isfinite(range.min) && rounded <= range.min) ||
      (range.below_max && rounded >= range.max);
  const bool contained = range.Contains(value);
  if (contained && !rounds_away) return "";
  return absl::StrCat(
      " must be ", RangeText(range, of_bytes), ", got ", text,
      contained ? absl::StrCat(", which is ", rounded, " in float32") : "");
}

absl::string_view RuleName(const google::protobuf::FieldDescriptor& field) {
  absl::string_view name = field.full_name();
  absl::ConsumePrefix(&name, field.file()->package());
  absl::ConsumePrefix(&name, ".");
  return name;
}

void FillDefaults(absl::Span<const FieldRule> rules,
                  google::protobuf::Message* message) {
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    const FieldRule* rule = Find(rules, field);
    if (rule == nullptr || rule->fallback == nullptr ||
        HasValue(*message, field)) {
      continue;
    }
    const std::string wrong =
        SetScalar(rule->fallback, /*quoted=*/false, message, &field);
    TRIBUTARY_CHECK(wrong.empty());
  }
}

absl::Status CheckRanges(absl::Span<const FieldRule> rules,
                         const google::protobuf::Message& message) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    const FieldRule* rule = Find(rules, field);
    if (rule == nullptr || !IsNumber(field)) continue;
    const int count = field.is_repeated()
                          ? message.GetReflection()->FieldSize(message, &field)
                          : 1;
    for (int n = 0; n < count; ++n) {
      const int index = field.is_repeated() ? n : -1;
      const std::string wrong =
          OutOfRange(rule->range, ScalarNumber(message, &field, index),
                     ScalarText(message, &field, index), /*of_bytes=*/false);
      if (wrong.empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat(field.name(), wrong));
    }
  }
  return absl::OkStatus();
}

}  // namespace tributary
