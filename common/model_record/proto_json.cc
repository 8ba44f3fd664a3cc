// SPDX-License-Identifier: Apache-2.0
#include "common/model_record/proto_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/schema/scalar_text.h"
#include "common/status/nearest_name.h"
#include "common/status/place.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "common/status/utf8.h"

namespace tributary {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using OrderedJson = nlohmann::ordered_json;

constexpr size_t kMaxLine = 96;
// Deeper than any model: a residual within a residual has four levels more.
constexpr int kMaxLevels = 128;
constexpr size_t kShownBytes = 40;  // of a wrong value

bool HoldsMessages(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

bool HoldsBytes(const FieldDescriptor* field) {
  return field->type() == FieldDescriptor::TYPE_BYTES;
}

std::string TextJson(const std::string& text) {
  if (IsUtf8(text)) return OrderedJson(text).dump();
  return absl::StrCat("{\"hex\": \"", absl::BytesToHexString(text), "\"}");
}

std::string ScalarJson(const Message& message, const FieldDescriptor* field,
                       int index) {
  const Reflection& r = *message.GetReflection();
  const bool one = index < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return TextJson(one ? r.GetString(message, field)
                          : r.GetRepeatedString(message, field, index));
    case FieldDescriptor::CPPTYPE_ENUM:
      return OrderedJson(ScalarText(message, field, index)).dump();
    case FieldDescriptor::CPPTYPE_FLOAT:
      return NumberText(one ? r.GetFloat(message, field)
                            : r.GetRepeatedFloat(message, field, index));
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(one ? r.GetUInt32(message, field)
                              : r.GetRepeatedUInt32(message, field, index));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(one ? r.GetUInt64(message, field)
                              : r.GetRepeatedUInt64(message, field, index));
    default:
      return ScalarText(message, field, index);
  }
}

bool IsWritten(const Message& message, const FieldDescriptor* field) {
  const Reflection& r = *message.GetReflection();
  if (field->is_repeated()) return r.FieldSize(message, field) > 0;
  if (field->has_presence()) return r.HasField(message, field);
  return field->cpp_type() != FieldDescriptor::CPPTYPE_STRING ||
         !r.GetString(message, field).empty();
}

std::string MessageJson(const Message& message, size_t indent);

// Writes all entries on one line if they fit, otherwise one entry a line.
std::string Enclose(const char* ends, const std::vector<std::string>& entries,
                    size_t indent, bool one_line) {
  const std::string line =
      absl::StrCat(std::string(1, ends[0]), absl::StrJoin(entries, ", "),
                   std::string(1, ends[1]));
  const bool fits =
      line.size() + indent <= kMaxLine && line.find('\n') == std::string::npos;
  if (one_line || fits) return line;
  const std::string margin(indent + 2, ' ');
  return absl::StrCat(std::string(1, ends[0]), "\n", margin,
                      absl::StrJoin(entries, absl::StrCat(",\n", margin)), "\n",
                      std::string(indent, ' '), std::string(1, ends[1]));
}

std::string FieldJson(const Message& message, const FieldDescriptor* field,
                      size_t indent) {
  const Reflection& r = *message.GetReflection();
  if (!field->is_repeated()) {
    return HoldsMessages(field)
               ? MessageJson(r.GetMessage(message, field), indent)
               : ScalarJson(message, field, -1);
  }
  std::vector<std::string> items;
  for (int i = 0; i < r.FieldSize(message, field); ++i) {
    items.push_back(
        HoldsMessages(field)
            ? MessageJson(r.GetRepeatedMessage(message, field, i), indent + 2)
            : ScalarJson(message, field, i));
  }
  // A long list of numbers or words stays on one line.
  return Enclose("[]", items, indent, !HoldsMessages(field));
}

std::string MessageJson(const Message& message, size_t indent) {
  std::vector<std::string> entries;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (!IsWritten(message, field)) continue;
    entries.push_back(absl::StrCat(
        "\"", field->name(), "\": ", FieldJson(message, field, indent + 2)));
  }
  return Enclose("{}", entries, indent, /*one_line=*/entries.empty());
}

// A list or object is not shown, because it may be nested too deeply to print.
absl::Status Wrong(const std::string& path, absl::string_view wanted,
                   const OrderedJson& got) {
  std::string text = got.is_array() ? "a list" : "an object";
  if (!got.is_structured()) {
    text = got.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }
  if (text.size() > kShownBytes) {
    text = absl::StrCat(CutUtf8(text, kShownBytes), "...");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path.empty() ? "the file" : path, ": wants ", wanted, ", got ", text));
}

absl::Status ReadText(const OrderedJson& json, const std::string& path,
                      const FieldDescriptor* field, std::string* text) {
  if (json.is_string()) {
    *text = json.get<std::string>();
    return absl::OkStatus();
  }
  if (HoldsBytes(field) && json.is_object() && json.size() == 1 &&
      json.contains("hex") && json["hex"].is_string()) {
    const std::string hex = json["hex"].get<std::string>();
    const bool whole =
        hex.size() % 2 == 0 &&
        hex.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (whole) {
      *text = absl::HexStringToBytes(hex);
      return absl::OkStatus();
    }
  }
  return Wrong(path, "a text", json);
}

// Sets the field, or adds to it.
absl::Status ReadScalar(const OrderedJson& json, const std::string& path,
                        Message* message, const FieldDescriptor* field) {
  const Reflection& r = *message->GetReflection();
  const bool add = field->is_repeated();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    std::string text;
    TRIBUTARY_RETURN_IF_ERROR(ReadText(json, path, field, &text));
    add ? r.AddString(message, field, text) : r.SetString(message, field, text);
    return absl::OkStatus();
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
    const double value = json.is_number() ? json.get<double>() : NAN;
    if (!std::isfinite(static_cast<float>(value))) {
      return Wrong(path, "a number that float32 can hold", json);
    }
    const auto number = static_cast<float>(value);
    add ? r.AddFloat(message, field, number)
        : r.SetFloat(message, field, number);
    return absl::OkStatus();
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    if (!json.is_number_unsigned() || json.get<uint64_t>() > UINT32_MAX) {
      return Wrong(path, "a whole number below 2^32", json);
    }
    r.SetUInt32(message, field, json.get<uint32_t>());
    return absl::OkStatus();
  }
  if (json.is_structured() || json.is_null()) {
    return Wrong(path, WantedScalar(*field), json);
  }
  const bool quoted = json.is_string();
  const std::string fault = SetScalar(
      quoted ? json.get<std::string>() : json.dump(), quoted, message, field);
  if (fault.empty()) return absl::OkStatus();
  return Wrong(path, WantedScalar(*field), json);
}

absl::Status ReadMessage(const OrderedJson& json, const std::string& path,
                         int level, Message* message);

absl::Status ReadField(const OrderedJson& json, const std::string& path,
                       int level, Message* message,
                       const FieldDescriptor* field) {
  const Reflection& r = *message->GetReflection();
  if (!field->is_repeated()) {
    return HoldsMessages(field) ? ReadMessage(json, path, level,
                                              r.MutableMessage(message, field))
                                : ReadScalar(json, path, message, field);
  }
  if (!json.is_array()) return Wrong(path, "a list", json);
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string item = absl::StrCat(path, ".", i);
    TRIBUTARY_RETURN_IF_ERROR(
        HoldsMessages(field)
            ? ReadMessage(json[i], item, level, r.AddMessage(message, field))
            : ReadScalar(json[i], item, message, field));
  }
  return absl::OkStatus();
}

absl::Status ReadMessage(const OrderedJson& json, const std::string& path,
                         int level, Message* message) {
  if (!json.is_object()) return Wrong(path, "an object", json);
  if (level > kMaxLevels) return Wrong(path, "fewer levels", json);
  for (const auto& [name, value] : json.items()) {
    const FieldDescriptor* field =
        message->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown field ", Quoted(name), " in ",
                       path.empty() ? "the file" : path));
    }
    const auto* oneof = field->real_containing_oneof();
    if (oneof != nullptr &&
        message->GetReflection()->HasOneof(*message, oneof)) {
      return Wrong(path, "one kind", json);
    }
    TRIBUTARY_RETURN_IF_ERROR(
        ReadField(value, JoinPath(path, name), level + 1, message, field));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ProtoToJson(const Message& message) {
  return MessageJson(message, 0);
}

absl::Status JsonToProto(const OrderedJson& json, Message* message) {
  return ReadMessage(json, "", 0, message);
}

}  // namespace tributary
