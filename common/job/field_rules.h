#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/schema/field_rule.h"
#include "google/protobuf/descriptor.h"

namespace tributary {

// Every number of the schema has its rule, so that no range is forgotten. Those
// of layers are with the layers' kinds.
absl::Span<const FieldRule> AllFieldRules();

// The rule of a field, or nullptr: then any value is good and none is needed.
const FieldRule* FieldRuleOf(const google::protobuf::FieldDescriptor& field);

// The field that a number for the whole message stands for, or nullptr.
const google::protobuf::FieldDescriptor* ShorthandOf(
    const google::protobuf::Descriptor& type);

}  // namespace tributary
