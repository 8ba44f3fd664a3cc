// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/schema/field_rule.h"
#include "google/protobuf/descriptor.h"

namespace tributary {

// The rules of all fields of the schema, except those of layers, which the
// kinds of layers hold. Every number has a rule, so that no range is forgotten.
absl::Span<const FieldRule> AllFieldRules();

// The rule of a field, or nullptr: then any value is valid and none is
// required.
const FieldRule* FieldRuleOf(const google::protobuf::FieldDescriptor& field);

// The field that a plain number for this message sets, or nullptr.
const google::protobuf::FieldDescriptor* ShorthandOf(
    const google::protobuf::Descriptor& type);

}  // namespace tributary
