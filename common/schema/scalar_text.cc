// SPDX-License-Identifier: Apache-2.0
#include "common/schema/scalar_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/status/nearest_name.h"
#include "common/status/utf8.h"

namespace tributary {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Longer than any path; keeps errors that show a text short.
constexpr size_t kMaxTextBytes = 4096;

constexpr std::array<std::pair<absl::string_view, int>, 3> kByteUnits = {
    {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}}};

// WIRE_FORMAT_FLOAT32 of WireFormat is written float32.
std::string EnumText(const EnumValueDescriptor& value) {
  std::string prefix;
  for (char c : value.type()->name()) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(c);
  }
  absl::string_view name = value.name();
  absl::ConsumePrefix(&name, prefix + "_");
  return absl::AsciiStrToLower(name);
}

// -1 when there is none of this name.
int EnumNumber(const EnumDescriptor& type, const std::string& text) {
  for (int i = 0; i < type.value_count(); ++i) {
    if (EnumText(*type.value(i)) == text && text != "unspecified") {
      return type.value(i)->number();
    }
  }
  return -1;
}

template <typename Integer>
std::errc ParseInteger(absl::string_view text, Integer* value) {
  // from_chars takes no spaces, no plus and no other base.
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc()) return error;
  return end == text.data() + text.size() ? error : std::errc::invalid_argument;
}

// Says what is wrong with the text of an integer; empty: nothing.
template <typename Integer>
std::string IntegerFault(absl::string_view text, const std::string& wants,
                         Integer* value) {
  using Limits = std::numeric_limits<Integer>;
  const std::errc error = ParseInteger(text, value);
  if (error == std::errc()) return "";
  if (error != std::errc::result_out_of_range) return wants;
  return absl::StrCat("wants a whole number from ", Limits::min(), " to ",
                      Limits::max());
}

bool ParseBytes(absl::string_view text, uint64_t* value) {
  int shift = 0;
  for (const auto& [unit, unit_shift] : kByteUnits) {
    if (absl::ConsumeSuffix(&text, unit)) {
      shift = unit_shift;
      text = absl::StripTrailingAsciiWhitespace(text);
      break;
    }
  }
  if (ParseInteger(text, value) != std::errc()) return false;
  if (*value > (std::numeric_limits<uint64_t>::max() >> shift)) return false;
  *value <<= shift;
  return true;
}

// Training computes in float32, so that float32 must hold the number.
std::string DoubleFault(const std::string& text, double* value) {
  if (!absl::SimpleAtod(text, value)) return "wants a number";
  if (std::isnan(*value)) return "wants a number";
  if (std::abs(*value) > std::numeric_limits<float>::max()) {
    return "wants a number that float32 can hold";
  }
  return "";
}

// True for the names and texts of a table, where a name may have several lines.
bool IsOfTable(const FieldDescriptor& field) {
  const std::string& name = field.full_name();
  return absl::StartsWith(name, "tributary.v1.CsvColumns.") ||
         name == "tributary.v1.CsvSource.classes" ||
         name == "tributary.v1.MissingSpec.texts";
}

bool HasControlCharacter(absl::string_view text, bool but_line_breaks) {
  return absl::c_any_of(text, [but_line_breaks](unsigned char c) {
    return absl::ascii_iscntrl(c) && c != '\t' &&
           (c != '\n' || !but_line_breaks);
  });
}

// Writes YAML, in double quotes where a plain scalar could be misread.
std::string StringText(const std::string& text) {
  const bool plain = !text.empty() &&
                     (absl::ascii_isalpha(text[0]) || text[0] == '/') &&
                     text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                         "XYZ0123456789_-./") == std::string::npos &&
                     !absl::EqualsIgnoreCase(text, "null");
  if (plain) return text;
  return absl::StrCat(
      "\"",
      absl::StrReplaceAll(
          text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\t", "\\t"}, {"\n", "\\n"}}),
      "\"");
}

template <typename Value, typename Set, typename Add>
void Put(Message* message, const FieldDescriptor* field, Set set, Add add,
         const Value& value) {
  const Reflection& reflection = *message->GetReflection();
  if (field->is_repeated()) {
    (reflection.*add)(message, field, value);
  } else {
    (reflection.*set)(message, field, value);
  }
}

}  // namespace

bool IsBytes(const FieldDescriptor& field) {
  return absl::EndsWith(field.name(), "_bytes");
}

std::string BytesText(uint64_t bytes) {
  for (const auto& [unit, shift] : kByteUnits) {
    if (bytes != 0 && bytes % (uint64_t{1} << shift) == 0) {
      return absl::StrCat(bytes >> shift, unit);
    }
  }
  return absl::StrCat(bytes);
}

std::string NumberText(double number) {
  std::array<char, 32> text;
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), number);
  return std::string(text.data(), error == std::errc() ? end : text.data());
}

std::vector<std::string> EnumTexts(const EnumDescriptor& type) {
  std::vector<std::string> texts;
  for (int i = 0; i < type.value_count(); ++i) {
    std::string text = EnumText(*type.value(i));
    if (text != "unspecified") texts.push_back(std::move(text));
  }
  return texts;
}

std::string EnumHint(const std::string& text, const FieldDescriptor& field) {
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_ENUM) return "";
  const std::string nearest = NearestName(text, EnumTexts(*field.enum_type()));
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

std::string WantedScalar(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text";
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::string wanted;
      const std::vector<std::string> texts = EnumTexts(*field.enum_type());
      for (size_t i = 0; i < texts.size(); ++i) {
        absl::StrAppend(&wanted,
                        i == 0 ? "" : (i + 1 < texts.size() ? ", " : " or "),
                        texts[i]);
      }
      return wanted;
    }
    case FieldDescriptor::CPPTYPE_UINT64:
      return IsBytes(field) ? "a size such as 4MiB"
                            : "a whole number of at least 0";
    default:
      return "a whole number";
  }
}

std::string SetScalar(const std::string& text, bool quoted, Message* message,
                      const FieldDescriptor* field) {
  const std::string wants = absl::StrCat("wants ", WantedScalar(*field));
  if (quoted && field->cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
      field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM) {
    return wants;
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      int32_t value = 0;
      std::string fault = IntegerFault(text, wants, &value);
      if (!fault.empty()) return fault;
      Put(message, field, &Reflection::SetInt32, &Reflection::AddInt32, value);
      return "";
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t value = 0;
      std::string fault = IntegerFault(text, wants, &value);
      if (!fault.empty()) return fault;
      Put(message, field, &Reflection::SetInt64, &Reflection::AddInt64, value);
      return "";
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t value = 0;
      std::string fault = IsBytes(*field)
                              ? (ParseBytes(text, &value) ? "" : wants)
                              : IntegerFault(text, wants, &value);
      if (!fault.empty()) return fault;
      Put(message, field, &Reflection::SetUInt64, &Reflection::AddUInt64,
          value);
      return "";
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double value;
      std::string fault = DoubleFault(text, &value);
      if (!fault.empty()) return fault;
      Put(message, field, &Reflection::SetDouble, &Reflection::AddDouble,
          value);
      return "";
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") return wants;
      Put(message, field, &Reflection::SetBool, &Reflection::AddBool,
          text == "true");
      return "";
    case FieldDescriptor::CPPTYPE_STRING:
      if (HasControlCharacter(text, IsOfTable(*field))) {
        return "wants a text without control characters";
      }
      // A message with a string that is not UTF-8 does not arrive.
      if (!IsUtf8(text)) return "wants a text in UTF-8";
      if (text.size() > kMaxTextBytes) {
        return absl::StrCat("wants a text of at most ", kMaxTextBytes,
                            " bytes");
      }
      Put(message, field, &Reflection::SetString, &Reflection::AddString, text);
      return "";
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = EnumNumber(*field->enum_type(), text);
      if (number < 0) return wants;
      Put(message, field, &Reflection::SetEnumValue, &Reflection::AddEnumValue,
          number);
      return "";
    }
    default:
      return "is of a type that job files cannot write";
  }
}

double ScalarNumber(const Message& message, const FieldDescriptor* field,
                    int index) {
  const Reflection& r = *message.GetReflection();
  const bool one = index < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return one ? r.GetInt32(message, field)
                 : r.GetRepeatedInt32(message, field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(
          one ? r.GetInt64(message, field)
              : r.GetRepeatedInt64(message, field, index));
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(
          one ? r.GetUInt64(message, field)
              : r.GetRepeatedUInt64(message, field, index));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return one ? r.GetDouble(message, field)
                 : r.GetRepeatedDouble(message, field, index);
    default:
      return 0;
  }
}

std::string ScalarText(const Message& message, const FieldDescriptor* field,
                       int index) {
  const Reflection& r = *message.GetReflection();
  const bool one = index < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(one ? r.GetInt32(message, field)
                              : r.GetRepeatedInt32(message, field, index));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(one ? r.GetInt64(message, field)
                              : r.GetRepeatedInt64(message, field, index));
    case FieldDescriptor::CPPTYPE_UINT64: {
      const uint64_t value = one ? r.GetUInt64(message, field)
                                 : r.GetRepeatedUInt64(message, field, index);
      return IsBytes(*field) ? BytesText(value) : absl::StrCat(value);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberText(one ? r.GetDouble(message, field)
                            : r.GetRepeatedDouble(message, field, index));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (one ? r.GetBool(message, field)
                  : r.GetRepeatedBool(message, field, index))
                 ? "true"
                 : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumText(one ? *r.GetEnum(message, field)
                          : *r.GetRepeatedEnum(message, field, index));
    case FieldDescriptor::CPPTYPE_STRING:
      return StringText(one ? r.GetString(message, field)
                            : r.GetRepeatedString(message, field, index));
    default:
      return "";
  }
}

}  // namespace tributary
