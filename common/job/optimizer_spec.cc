#include "common/job/optimizer_spec.h"

#include <deque>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/optimizer/optimizer.h"

namespace tributary {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* FieldOf(const v1::OptimizerSpec& spec) {
  return v1::OptimizerSpec::descriptor()->FindFieldByNumber(spec.kind_case());
}

std::vector<FieldRule> RulesOf(const OptimizerKind& kind) {
  static auto* const names =
      new std::deque<std::string>;  // rules refer to them
  const FieldDescriptor* const field =
      v1::OptimizerSpec::descriptor()->FindFieldByName(kind.name);
  TRIBUTARY_CHECK(field != nullptr);
  std::vector<FieldRule> rules;
  for (const OptimizerField& f : kind.fields) {
    if (f.fallback == nullptr && !f.required && f.range.min < -1e300) continue;
    names->push_back(absl::StrCat(field->message_type()->name(), ".", f.name));
    rules.push_back({.field = names->back(),
                     .range = f.range,
                     .required = f.required,
                     .fallback = f.fallback});
  }
  return rules;
}

const std::vector<FieldRule>& CachedRulesOf(const OptimizerKind& kind) {
  static const auto* const all = [] {
    auto* made = new std::vector<std::vector<FieldRule>>;
    for (const OptimizerKind& k : AllOptimizerKinds()) {
      made->push_back(RulesOf(k));
    }
    return made;
  }();
  return (*all)[&kind - AllOptimizerKinds().data()];
}

// The value of a number; 0 or 1 of a bool; the number of an enum's value.
double ValueOf(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field) ? 1 : 0;
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnumValue(message, &field);
    default:
      return reflection.GetDouble(message, &field);
  }
}

}  // namespace

std::vector<FieldRule> OptimizerRules() {
  std::vector<FieldRule> all;
  for (const OptimizerKind& kind : AllOptimizerKinds()) {
    const std::vector<FieldRule>& rules = CachedRulesOf(kind);
    all.insert(all.end(), rules.begin(), rules.end());
  }
  return all;
}

std::string OptimizerName(const v1::OptimizerSpec& spec) {
  const FieldDescriptor* const field = FieldOf(spec);
  return field == nullptr ? "" : field->name();
}

void ResolveOptimizer(v1::OptimizerSpec* spec) {
  const OptimizerKind* const kind = FindOptimizerKind(OptimizerName(*spec));
  if (kind == nullptr) return;
  FillDefaults(CachedRulesOf(*kind),
               spec->GetReflection()->MutableMessage(spec, FieldOf(*spec)));
}

OptimizerOptions OptimizerOptionsOf(const v1::OptimizerSpec& spec) {
  OptimizerOptions options;
  const OptimizerKind* const kind = FindOptimizerKind(OptimizerName(spec));
  if (kind == nullptr) return options;
  options.kind = kind->name;
  const Message& message =
      spec.GetReflection()->GetMessage(spec, FieldOf(spec));
  for (const OptimizerField& f : kind->fields) {
    const double value =
        ValueOf(message, *message.GetDescriptor()->FindFieldByName(f.name));
    if (const auto* number =
            std::get_if<double OptimizerOptions::*>(&f.constant)) {
      options.** number = value;
    } else {
      options.*std::get<bool OptimizerOptions::*>(f.constant) = value != 0;
    }
  }
  return options;
}

bool NeedsWholeTensors(const v1::OptimizerSpec& spec) {
  const OptimizerKind* const kind = FindOptimizerKind(OptimizerName(spec));
  return kind != nullptr && kind->makes_direction;
}

}  // namespace tributary
