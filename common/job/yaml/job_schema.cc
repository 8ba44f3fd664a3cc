// SPDX-License-Identifier: Apache-2.0
#include "common/job/yaml/job_schema.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/yaml/field_rules.h"
#include "common/schema/scalar_text.h"
#include "nlohmann/json.hpp"
#include "tributary/v1/job.pb.h"

namespace tributary {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

// A text may also be written as a number or a switch, as in `label: 0`.
const Json kText = {{"type", {"string", "number", "boolean"}}};

void PutLimit(const char* inclusive, const char* exclusive, bool open,
              double limit, Json* schema) {
  if (!std::isfinite(limit)) return;
  const bool whole = limit == std::floor(limit) && std::abs(limit) < 0x1p53;
  (*schema)[open ? exclusive : inclusive] =
      whole ? Json(static_cast<int64_t>(limit)) : Json(limit);
}

void PutRange(const FieldDescriptor& field, Json* schema) {
  const FieldRule* rule = FieldRuleOf(field);
  if (rule == nullptr) return;
  PutLimit("minimum", "exclusiveMinimum", rule->range.above_min,
           rule->range.min, schema);
  PutLimit("maximum", "exclusiveMaximum", rule->range.below_max,
           rule->range.max, schema);
}

class SchemaWriter {
 public:
  // A reference to the schema of a message, which is written once.
  Json Reference(const Descriptor& type) {
    if (written_.insert(type.name()).second) {
      definitions_[type.name()] = nullptr;  // keeps its place
      definitions_[type.name()] = Message(type);
    }
    return {{"$ref", absl::StrCat("#/$defs/", type.name())}};
  }

  Json Object(const Descriptor& type) {
    Json properties = Json::object();
    for (int i = 0; i < type.field_count(); ++i) {
      properties[type.field(i)->name()] = Field(*type.field(i));
    }
    return {{"type", "object"},
            {"properties", std::move(properties)},
            {"additionalProperties", false}};
  }

  Json TakeDefinitions() { return std::move(definitions_); }

 private:
  // A mapping, or one of its short forms: a key by itself, or a number.
  Json Message(const Descriptor& type) {
    Json forms = {Object(type), {{"type", "null"}}};
    Json words = Json::array();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const bool message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL ||
          (message && !field.is_repeated())) {
        words.push_back(field.name());
      }
    }
    if (!words.empty()) forms.push_back({{"enum", words}});
    if (const FieldDescriptor* number = ShorthandOf(type)) {
      forms.push_back(Field(*number));
    }
    return {{"anyOf", std::move(forms)}};
  }

  Json Field(const FieldDescriptor& field) {
    Json one = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE
                   ? Reference(*field.message_type())
                   : Scalar(field);
    const FieldRule* rule = FieldRuleOf(field);
    if (rule != nullptr && rule->fallback != nullptr) {
      one["default"] = rule->fallback;
    }
    if (!field.is_repeated()) return one;
    return {{"anyOf", {one, {{"type", "array"}, {"items", one}}}}};
  }

  static Json Scalar(const FieldDescriptor& field) {
    Json schema;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return kText;
      case FieldDescriptor::CPPTYPE_BOOL:
        return {{"type", "boolean"}};
      case FieldDescriptor::CPPTYPE_ENUM:
        return {{"enum", EnumTexts(*field.enum_type())}};
      case FieldDescriptor::CPPTYPE_DOUBLE:
        schema = {{"type", "number"}};
        break;
      default:
        schema = {{"type", "integer"}};
    }
    PutRange(field, &schema);
    if (!IsBytes(field)) return schema;
    return {{"anyOf",
             {schema,
              {{"type", "string"}, {"pattern", "^[0-9]+(KiB|MiB|GiB)?$"}}}}};
  }

  std::set<std::string> written_;
  Json definitions_ = Json::object();
};

}  // namespace

std::string JobSchema() {
  SchemaWriter writer;
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "A Tributary job"}};
  schema.update(writer.Object(*v1::JobSpec::descriptor()));
  schema["$defs"] = writer.TakeDefinitions();
  return schema.dump(2) + "\n";
}

}  // namespace tributary
