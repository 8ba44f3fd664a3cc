// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/job/job_file.h"
#include "common/job/resolve.h"
#include "common/schema/field_rule.h"
#include "common/schema/scalar_text.h"
#include "common/status/place.h"
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
    const bool always = !field->has_presence() && !field->is_repeated() &&
                        field->cpp_type() != FieldDescriptor::CPPTYPE_STRING;
    if (always || HasValue(message, *field)) written.push_back(field);
  }
  return written;
}

class YamlWriter {
 public:
  explicit YamlWriter(const v1::JobSpec& job) : job_(job) {}

  std::string Write() const {
    std::string yaml;
    AppendBlock(job_, "", 0, &yaml);
    return yaml;
  }

 private:
  // The fields of the message at `path` to write. A value that another field
  // gives is left out, so that a change of that field changes it as well.
  std::vector<const FieldDescriptor*> FieldsOf(const Message& message,
                                               const std::string& path) const {
    std::vector<const FieldDescriptor*> fields;
    for (const FieldDescriptor* field : WrittenFields(message)) {
      const std::string here = JoinPath(path, field->name());
      if (!HasDependentDefault(job_, here) &&
          !IsGiven(message, field, SourceOf(job_, here))) {
        fields.push_back(field);
      }
    }
    return fields;
  }

  // Whether the field at `source` has the same value.
  bool IsGiven(const Message& message, const FieldDescriptor* field,
               const std::string& source) const {
    if (source.empty()) return false;
    const Message* owner = &job_;
    const std::vector<std::string> names = absl::StrSplit(source, '.');
    for (const std::string& name : names) {
      const FieldDescriptor* const found =
          owner->GetDescriptor()->FindFieldByName(name);
      if (found == nullptr) return false;
      const bool last = &name == &names.back();
      if (found->has_presence() &&
          !owner->GetReflection()->HasField(*owner, found)) {
        return false;
      }
      if (last) {
        return FlowValue(*owner, found, "") == FlowValue(message, field, "");
      }
      owner = &owner->GetReflection()->GetMessage(*owner, found);
    }
    return false;
  }

  // A value on one line.
  std::string FlowValue(const Message& message, const FieldDescriptor* field,
                        const std::string& path) const {
    const auto& reflection = *message.GetReflection();
    if (!field->is_repeated()) {
      return IsMessage(field)
                 ? Flow(reflection.GetMessage(message, field), path)
                 : ScalarText(message, field, -1);
    }
    std::vector<std::string> items;
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      items.push_back(IsMessage(field) ? Flow(reflection.GetRepeatedMessage(
                                                  message, field, i),
                                              absl::StrCat(path, ".", i))
                                       : ScalarText(message, field, i));
    }
    return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
  }

  // A message on one line: "{in: 784, out: 256}".
  std::string Flow(const Message& message, const std::string& path) const {
    std::vector<std::string> entries;
    for (const FieldDescriptor* field : FieldsOf(message, path)) {
      entries.push_back(absl::StrCat(
          field->name(), ": ",
          FlowValue(message, field, JoinPath(path, field->name()))));
    }
    return absl::StrCat("{", absl::StrJoin(entries, ", "), "}");
  }

  // A layer, or a message that holds only values and fits, stays on one line;
  // any other message becomes a block.
  bool FitsFlow(const Message& message, const std::string& path, size_t indent,
                const std::string& name) const {
    for (const FieldDescriptor* field : FieldsOf(message, path)) {
      if (IsMessage(field)) return false;
    }
    return indent + name.size() + Flow(message, path).size() + 2 <= kMaxLine;
  }

  void AppendBlock(const Message& message, const std::string& path,
                   size_t indent, std::string* yaml) const {
    const std::string margin(indent, ' ');
    for (const FieldDescriptor* field : FieldsOf(message, path)) {
      const auto& reflection = *message.GetReflection();
      const std::string here = JoinPath(path, field->name());
      absl::StrAppend(yaml, margin, field->name(), ":");
      if (IsMessage(field) && field->is_repeated()) {
        AppendItems(message, field, here, margin, yaml);
      } else if (IsMessage(field)) {
        const Message& value = reflection.GetMessage(message, field);
        if (FitsFlow(value, here, indent, field->name())) {
          absl::StrAppend(yaml, " ", Flow(value, here), "\n");
        } else {
          absl::StrAppend(yaml, "\n");
          AppendBlock(value, here, indent + 2, yaml);
        }
      } else {
        absl::StrAppend(yaml, " ", FlowValue(message, field, here), "\n");
      }
    }
  }

  void AppendItems(const Message& message, const FieldDescriptor* field,
                   const std::string& path, const std::string& margin,
                   std::string* yaml) const {
    const auto& reflection = *message.GetReflection();
    absl::StrAppend(yaml, "\n");
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      const std::string here = absl::StrCat(path, ".", i);
      const Message& value = reflection.GetRepeatedMessage(message, field, i);
      const std::string item = Flow(value, here);
      // Writes "- linear: {...}", which is more readable than "- {linear:
      // {...}}".
      const bool bare = FieldsOf(value, here).size() == 1;
      absl::StrAppend(yaml, margin, "  - ",
                      bare ? item.substr(1, item.size() - 2) : item, "\n");
    }
  }

  const v1::JobSpec& job_;
};

}  // namespace

std::string JobToYaml(const v1::JobSpec& job) {
  return YamlWriter(job).Write();
}

}  // namespace tributary
