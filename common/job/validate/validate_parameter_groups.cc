// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/job/optimizer_spec.h"
#include "common/job/validate/validate.h"
#include "common/layers/model_parameters.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/parameter_group.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Returns the first field that would make the group's variant equal that of
// `base` if it had the value of `base`; "" if no field would.
std::string FieldOfVariant(const OptimizerKind& kind,
                           const OptimizerOptions& base,
                           const OptimizerOptions& group) {
  for (const OptimizerField& field : kind.fields) {
    OptimizerOptions tried = group;
    std::visit([&](auto constant) { tried.*constant = base.*constant; },
               field.constant);
    if (kind.variant(tried) == kind.variant(base)) {
      return absl::StrCat(".", field.name);
    }
  }
  return "";
}

// Two variants of a kind keep different states, or compute them differently.
absl::Status ValidateVariant(const Places& places, const std::string& path,
                             const v1::OptimizerSpec& base,
                             const v1::OptimizerSpec& group) {
  const OptimizerKind& kind = *FindOptimizerKind(OptimizerName(base));
  const OptimizerOptions wanted = OptimizerOptionsOf(base);
  const OptimizerOptions options = OptimizerOptionsOf(group);
  if (kind.variant(wanted) == kind.variant(options)) return absl::OkStatus();
  const std::string field = FieldOfVariant(kind, wanted, options);
  return places.Error(
      path + field, path, field, " makes the group another variant of ",
      kind.name, " than training.optimizer", ".", kind.name, field,
      " does; all groups must be of one variant, so that their states have the "
      "same names");
}

absl::Status ValidateNames(const Places& places, const std::string& path,
                           const v1::ParameterGroupSpec& group,
                           const ParameterSpecs& parameters) {
  for (int i = 0; i < group.parameters_size(); ++i) {
    const std::string& pattern = group.parameters(i);
    const std::string item = absl::StrCat(path, ".parameters.", i);
    if (pattern.empty()) return places.Error(item, item, " is empty");
    const bool names_one = std::any_of(
        parameters.begin(), parameters.end(), [&](const ParameterSpec& spec) {
          return MatchesPattern(pattern, spec.name);
        });
    if (names_one || parameters.empty()) continue;
    return places.Error(item, item, ": no parameter of the model has the name ",
                        Quoted(pattern), "; its parameters are ",
                        Quoted(parameters.front().name), " to ",
                        Quoted(parameters.back().name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateParameterGroups(const Places& places,
                                     const v1::JobSpec& job) {
  const v1::TrainingSpec& training = job.training();
  if (training.parameter_groups().empty()) return absl::OkStatus();
  ParameterSpecs parameters;  // empty: the program knows them
  if (job.has_model()) parameters = ModelParameters(job.model());
  for (int i = 0; i < training.parameter_groups_size(); ++i) {
    const v1::ParameterGroupSpec& group = training.parameter_groups(i);
    const std::string path = ParameterGroupPath(i);
    TRIBUTARY_RETURN_IF_ERROR(ValidateNames(places, path, group, parameters));
    if (!group.has_optimizer()) continue;
    if (group.frozen()) {
      return places.Error(path + ".frozen", path, ".frozen and ", path,
                          ".optimizer exclude each other; keep one");
    }
    const std::string name = OptimizerName(group.optimizer());
    const std::string optimizer = absl::StrCat(path, ".optimizer.", name);
    TRIBUTARY_RETURN_IF_ERROR(
        ValidateOptimizer(places, path + ".optimizer", group.optimizer()));
    TRIBUTARY_RETURN_IF_ERROR(ValidateVariant(
        places, optimizer, training.optimizer(), group.optimizer()));
  }
  return absl::OkStatus();
}

}  // namespace tributary
