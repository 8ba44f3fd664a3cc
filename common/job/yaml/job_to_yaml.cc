// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/job/job_file.h"
#include "common/schema/scalar_text.h"
#include "google/protobuf/message.h"

namespace tributary {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kMaxLine = 80;

bool IsMessage(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

// The fields to write: those with a value. A number or flag without presence
// always has one; an empty text or list is left out.
std::vector<const FieldDescriptor*> WrittenFields(const Message& message) {
  std::vector<const FieldDescriptor*> written;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const auto& reflection = *message.GetReflection();
    const bool always = !field->has_presence() && !field->is_repeated() &&
                        field->cpp_type() != FieldDescriptor::CPPTYPE_STRING;
    const bool has = field->is_repeated()
                         ? reflection.FieldSize(message, field) > 0
                         : reflection.HasField(message, field);
    if (always || has) written.push_back(field);
  }
  return written;
}

// Writes a message on one line: "{in: 784, out: 256}".
std::string Flow(const Message& message);

std::string FlowValue(const Message& message, const FieldDescriptor* field) {
  const auto& reflection = *message.GetReflection();
  if (!field->is_repeated()) {
    return IsMessage(field) ? Flow(reflection.GetMessage(message, field))
                            : ScalarText(message, field, -1);
  }
  std::vector<std::string> items;
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    items.push_back(IsMessage(field)
                        ? Flow(reflection.GetRepeatedMessage(message, field, i))
                        : ScalarText(message, field, i));
  }
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

std::string Flow(const Message& message) {
  std::vector<std::string> entries;
  for (const FieldDescriptor* field : WrittenFields(message)) {
    entries.push_back(
        absl::StrCat(field->name(), ": ", FlowValue(message, field)));
  }
  return absl::StrCat("{", absl::StrJoin(entries, ", "), "}");
}

// A layer stays on one line, and so does a message that holds only values and
// fits; any other message becomes a block.
bool FitsFlow(const Message& message, size_t indent, const std::string& name) {
  for (const FieldDescriptor* field : WrittenFields(message)) {
    if (IsMessage(field)) return false;
  }
  return indent + name.size() + Flow(message).size() + 2 <= kMaxLine;
}

void AppendBlock(const Message& message, size_t indent, std::string* yaml) {
  const std::string margin(indent, ' ');
  for (const FieldDescriptor* field : WrittenFields(message)) {
    const auto& reflection = *message.GetReflection();
    absl::StrAppend(yaml, margin, field->name(), ":");
    if (IsMessage(field) && field->is_repeated()) {
      absl::StrAppend(yaml, "\n");
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        const Message& value = reflection.GetRepeatedMessage(message, field, i);
        const std::string item = Flow(value);
        // Writes "- linear: {...}", which is more readable than "- {linear:
        // {...}}".
        const bool bare = WrittenFields(value).size() == 1;
        absl::StrAppend(yaml, margin, "  - ",
                        bare ? item.substr(1, item.size() - 2) : item, "\n");
      }
    } else if (IsMessage(field)) {
      const Message& value = reflection.GetMessage(message, field);
      if (FitsFlow(value, indent, field->name())) {
        absl::StrAppend(yaml, " ", Flow(value), "\n");
      } else {
        absl::StrAppend(yaml, "\n");
        AppendBlock(value, indent + 2, yaml);
      }
    } else {
      absl::StrAppend(yaml, " ", FlowValue(message, field), "\n");
    }
  }
}

}  // namespace

std::string JobToYaml(const v1::JobSpec& job) {
  std::string yaml;
  AppendBlock(job, 0, &yaml);
  return yaml;
}

}  // namespace tributary
