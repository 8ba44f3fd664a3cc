// SPDX-License-Identifier: Apache-2.0
#include "common/job/yaml/proto_reader.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "common/job/yaml/field_rules.h"
#include "common/schema/scalar_text.h"
#include "common/status/nearest_name.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

constexpr char kLearningRateHint[] =
    "; the learning rate is a field of the optimizer, as in training: "
    "{optimizer: {adam: {learning_rate: 0.001}}}";

// Whether this unknown field is the learning rate, outside of the optimizer.
bool IsLearningRate(const std::string& name, const Descriptor& descriptor) {
  return (name == "lr" || name == "learning_rate") &&
         (descriptor.name() == "JobSpec" ||
          descriptor.name() == "TrainingSpec" ||
          descriptor.name() == "OptimizerSpec");
}

// Returns a path as errors show it; the job itself has an empty path.
std::string Owner(const std::string& path) {
  return path.empty() ? "the job" : path;
}

bool LooksLikeName(const std::string& text) {
  if (text.empty() || !absl::ascii_isalpha(text[0])) return false;
  for (char c : text) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return true;
}

// Describes what was written where something else was wanted: "a mapping".
std::string Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return node.quoted ? absl::StrCat("the text ", Quoted(node.text))
                         : Quoted(node.text);
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a mapping";
  }
  return "";
}

// Describes what to write for a message: a mapping with its field names.
std::string WantedMapping(const Descriptor& type) {
  if (type.field_count() == 0) return "wants nothing in it, as in {}";
  return absl::StrCat("wants a mapping with ",
                      absl::StrJoin(FieldNames(type), ", "));
}

}  // namespace

std::vector<std::string> FieldNames(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) {
    names.push_back(type.field(i)->name());
  }
  return names;
}

absl::Status ProtoReader::UnknownField(int line, const std::string& name,
                                       const std::string& path,
                                       const Descriptor& descriptor) const {
  return Error(line, "unknown field ", Quoted(name), " in ", Owner(path),
               IsLearningRate(name, descriptor)
                   ? kLearningRateHint
                   : NameHint(name, FieldNames(descriptor), Owner(path)));
}

absl::Status ProtoReader::ReadMessage(const YamlNode& node,
                                      const std::string& path,
                                      Message* message) const {
  if (!path.empty()) places_->Record(path, source_.At(node.line));
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return absl::OkStatus();
    case YamlNode::Kind::kMap:
      return ReadMap(node, path, message);
    case YamlNode::Kind::kScalar:
      return ReadShorthand(node, path, message);
    case YamlNode::Kind::kSequence:
      break;
  }
  return Error(node.line, Owner(path), " ",
               WantedMapping(*message->GetDescriptor()), "; got a list");
}

absl::Status ProtoReader::ReadMap(const YamlNode& node, const std::string& path,
                                  Message* message) const {
  const Descriptor& type = *message->GetDescriptor();
  std::map<std::string, int> lines;  // of the keys read so far
  std::map<const OneofDescriptor*, const FieldDescriptor*> chosen;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const auto& [name, line] = node.keys[i];
    const FieldDescriptor* field = type.FindFieldByName(name);
    if (field == nullptr) return UnknownField(line, name, path, type);
    if (const auto [it, is_new] = lines.try_emplace(name, line); !is_new) {
      return Error(line, name, " is given twice in ", Owner(path),
                   ", first on line ", it->second);
    }
    if (const OneofDescriptor* one = field->real_containing_oneof()) {
      if (const auto [it, is_new] = chosen.try_emplace(one, field); !is_new) {
        return Error(line, name, " and ", it->second->name(), " exclude each ",
                     "other in ", Owner(path), "; keep one");
      }
    }
    TRIBUTARY_RETURN_IF_ERROR(
        ReadField(node.items[i], JoinPath(path, name), message, field));
  }
  return absl::OkStatus();
}

// Reads `- relu` as {relu: {}}, `shuffle: none` as {none: true} and
// `tensor_parallel: 2` as {ranks: 2}.
absl::Status ProtoReader::ReadShorthand(const YamlNode& node,
                                        const std::string& path,
                                        Message* message) const {
  const Descriptor& type = *message->GetDescriptor();
  const FieldDescriptor* field = type.FindFieldByName(node.text);
  if (field == nullptr) {
    if (LooksLikeName(node.text) && type.field_count() > 0) {
      return UnknownField(node.line, node.text, path, type);
    }
    if (const FieldDescriptor* number = ShorthandOf(type)) {
      return ReadField(node, JoinPath(path, number->name()), message, number);
    }
    return Error(node.line, Owner(path), " ", WantedMapping(type), "; got ",
                 Describe(node));
  }
  YamlNode value{.line = node.line};
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    value.kind = YamlNode::Kind::kScalar;
    value.text = "true";
  } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE ||
             field->is_repeated()) {
    return Error(node.line, JoinPath(path, node.text),
                 " wants a value, as in {", node.text, ": ...}");
  }
  return ReadField(value, JoinPath(path, node.text), message, field);
}

absl::Status ProtoReader::ReadField(const YamlNode& node,
                                    const std::string& path, Message* message,
                                    const FieldDescriptor* field) const {
  const Reflection& reflection = *message->GetReflection();
  reflection.ClearField(message, field);
  places_->Forget(path);
  places_->Record(path, source_.At(node.line));
  if (field->is_repeated()) return ReadRepeated(node, path, message, field);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return ReadMessage(node, path, reflection.MutableMessage(message, field));
  }
  return ReadScalar(node, path, message, field);
}

absl::Status ProtoReader::ReadRepeated(const YamlNode& node,
                                       const std::string& path,
                                       Message* message,
                                       const FieldDescriptor* field) const {
  const bool of_messages =
      field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (node.kind != YamlNode::Kind::kSequence) {
    // A single value is read as a list with one item.
    if (!of_messages && node.kind == YamlNode::Kind::kScalar) {
      return ReadScalar(node, path, message, field);
    }
    return Error(node.line, path, " wants a list, got ", Describe(node));
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const std::string item_path = absl::StrCat(path, ".", i);
    const YamlNode& item = node.items[i];
    places_->Record(item_path, source_.At(item.line));
    TRIBUTARY_RETURN_IF_ERROR(
        of_messages
            ? ReadMessage(item, item_path,
                          message->GetReflection()->AddMessage(message, field))
            : ReadScalar(item, item_path, message, field));
  }
  return absl::OkStatus();
}

absl::Status ProtoReader::ReadScalar(const YamlNode& node,
                                     const std::string& path, Message* message,
                                     const FieldDescriptor* field) const {
  if (node.kind != YamlNode::Kind::kScalar) {
    return Error(node.line, path, " wants ", WantedScalar(*field), ", got ",
                 Describe(node));
  }
  const std::string fault = SetScalar(node.text, node.quoted, message, field);
  if (fault.empty()) return absl::OkStatus();
  return Error(node.line, path, " ", fault, ", got ", Describe(node),
               EnumHint(node.text, *field));
}

}  // namespace tributary
