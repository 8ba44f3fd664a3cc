// SPDX-License-Identifier: Apache-2.0
#include "common/job/optimizer_spec.h"

#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/job/learning_rate_schedule.h"
#include "common/optimizer/optimizer.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* FieldOf(const v1::OptimizerSpec& spec) {
  return v1::OptimizerSpec::descriptor()->FindFieldByNumber(spec.kind_case());
}

// The default of a field for which the kind gives none.
const char* ZeroOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return "all";  // DecayOn
    default:
      return "0";
  }
}

std::vector<FieldRule> RulesOf(const OptimizerKind& kind) {
  static auto* const names =
      new std::deque<std::string>;  // rules refer to them
  const FieldDescriptor* const field =
      v1::OptimizerSpec::descriptor()->FindFieldByName(kind.name);
  TRIBUTARY_CHECK(field != nullptr);
  std::vector<FieldRule> rules;
  for (const OptimizerField& f : kind.fields) {
    const FieldDescriptor* const own =
        field->message_type()->FindFieldByName(f.name);
    TRIBUTARY_CHECK(own != nullptr);
    names->push_back(absl::StrCat(field->message_type()->name(), ".", f.name));
    rules.push_back({.field = names->back(),
                     .range = f.range,
                     .required = f.required,
                     .fallback = f.fallback != nullptr || f.required
                                     ? f.fallback
                                     : ZeroOf(*own)});
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

// Returns a number's value, 0 or 1 for a bool, or the number of an enum value.
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

// Fills the fields that the group does not have with those of `base`.
void Inherit(const Message& base, Message* group) {
  const std::unique_ptr<Message> own(group->New());
  own->CopyFrom(*group);
  group->CopyFrom(base);
  group->MergeFrom(*own);
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

std::string ParameterGroupPath(int group) {
  return absl::StrCat("training.parameter_groups.", group);
}

absl::Status ResolveParameterGroups(const Places& places,
                                    v1::TrainingSpec* training) {
  const v1::OptimizerSpec& base = training->optimizer();
  const std::string kind = OptimizerName(base);
  if (kind.empty()) return absl::OkStatus();  // reported elsewhere
  for (int i = 0; i < training->parameter_groups_size(); ++i) {
    v1::ParameterGroupSpec& group = *training->mutable_parameter_groups(i);
    if (!group.has_optimizer()) {
      if (!group.frozen()) *group.mutable_optimizer() = base;
      continue;
    }
    const std::string path = ParameterGroupPath(i) + ".optimizer";
    const std::string own = OptimizerName(group.optimizer());
    if (own.empty()) continue;  // reported elsewhere
    if (own != kind) {
      return places.Error(JoinPath(path, own), path, " must be ", kind,
                          ", as training.optimizer is, got ", own);
    }
    const FieldDescriptor* const field = FieldOf(base);
    v1::OptimizerSpec* const spec = group.mutable_optimizer();
    Inherit(base.GetReflection()->GetMessage(base, field),
            spec->GetReflection()->MutableMessage(spec, field));
  }
  return absl::OkStatus();
}

absl::StatusOr<LearningRateSchedule> LearningRateScheduleOf(
    const v1::JobSpec& job, int64_t total_steps) {
  return LearningRateSchedule::Create(
      job.training().learning_rate_schedule(),
      OptimizerOptionsOf(job.training().optimizer()).learning_rate,
      total_steps);
}

absl::StatusOr<std::vector<ParameterGroup>> ParameterGroupsOf(
    const v1::JobSpec& job, int64_t total_steps) {
  const v1::TrainingSpec& training = job.training();
  std::vector<ParameterGroup> groups;
  for (const v1::ParameterGroupSpec& spec : training.parameter_groups()) {
    ParameterGroup& group = groups.emplace_back();
    group.parameters = {spec.parameters().begin(), spec.parameters().end()};
    group.frozen = spec.frozen();
    group.optimizer = OptimizerOptionsOf(
        spec.has_optimizer() ? spec.optimizer() : training.optimizer());
    TRIBUTARY_ASSIGN_OR_RETURN(LearningRateSchedule schedule,
                               LearningRateSchedule::Create(
                                   training.learning_rate_schedule(),
                                   group.optimizer.learning_rate, total_steps));
    group.learning_rate = [schedule = std::move(schedule)](int64_t step) {
      return schedule.At(step);
    };
  }
  return groups;
}

}  // namespace tributary
