// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/model_declaration.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/limits.h"
#include "common/host/address.h"
#include "common/job/job_options.h"
#include "common/job/learning_rate_schedule.h"
#include "common/member/answer_limits.h"
#include "common/plan/partition_plan.h"
#include "common/plan/plan_codec.h"
#include "common/status/utf8.h"

namespace tributary {
namespace {

// Two keep a link busy; more let the workers' flows drift apart
// (docs/decisions/block-size.md).
constexpr uint32_t kUnansweredBlocks = 2;

std::string Describe(const v1::ParameterSpec& spec) {
  return absl::StrCat("\"", spec.name(), "\" [",
                      absl::StrJoin(spec.shape(), ", "), "]");
}

bool IsOnOneMachine(const v1::Plan& plan) {
  return absl::c_all_of(plan.servers(), IsLoopback);
}

uint64_t BucketBytes(const v1::Plan& plan, const v1::JobSpec& job) {
  const uint64_t bytes = job.strategy().parameter_server().bucket_bytes();
  if (bytes > 0) return bytes;
  double elements = 0;
  for (const v1::ParameterSpec& parameter : plan.parameters()) {
    elements += absl::c_accumulate(parameter.shape(), 1.0, std::multiplies<>());
  }
  return PartitionPlan::DefaultBucketBytes(elements * sizeof(float),
                                           std::max(1, plan.servers_size()),
                                           IsOnOneMachine(plan));
}

}  // namespace

v1::Plan PlanOf(const v1::DeclareModelRequest& model, const v1::JobSpec& job,
                std::vector<std::string> servers) {
  v1::Plan plan;
  *plan.mutable_parameters() = model.parameters();
  for (std::string& server : servers) plan.add_servers(std::move(server));
  plan.set_bucket_bytes(BucketBytes(plan, job));
  if (!IsOnOneMachine(plan)) plan.set_unanswered_blocks(kUnansweredBlocks);
  plan.set_wire(job.strategy().parameter_server().wire());
  plan.set_weights_wire(job.strategy().parameter_server().weights_wire());
  plan.set_error_feedback(StrategyOf(job).error_feedback);
  plan.set_top_k_fraction(job.strategy().parameter_server().top_k_fraction());
  plan.set_num_workers(job.cluster().workers());
  if (const DeviceMesh mesh = StrategyOf(job).mesh(); mesh.model_size() > 1) {
    plan.mutable_mesh()->set_data(mesh.data);
    plan.mutable_mesh()->set_stages(mesh.stages);
    plan.mutable_mesh()->set_tensor(mesh.tensor);
  }
  plan.set_total_steps(model.total_steps());
  return plan;
}

absl::Status CheckDeclaration(const v1::DeclareModelRequest& model,
                              const v1::JobSpec& job) {
  const v1::Plan plan =
      PlanOf(model, job, std::vector<std::string>(job.cluster().servers()));
  if (const size_t bytes = plan.ByteSizeLong(); bytes > kMaxPlanBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the names and shapes of the model's ", model.parameters_size(),
        " parameters take ", bytes, " bytes, wanted at most ", kMaxPlanBytes));
  }
  return MakePartitionPlan(plan).status();
}

namespace {

// Long enough to show where two settings of an optimizer differ.
std::string Setting(absl::string_view text) {
  constexpr size_t kMaxBytes = 300;
  return absl::StrCat("\"", absl::Utf8SafeCEscape(CutUtf8(text, kMaxBytes)),
                      "\"");
}

std::string StepsText(int64_t total_steps) {
  return total_steps == kOpenEnd ? "an open number of"
                                 : absl::StrCat(total_steps);
}

std::string SettingsDifference(const v1::DeclareModelRequest& first,
                               const v1::DeclareModelRequest& other) {
  const int both = std::min(first.settings_size(), other.settings_size());
  for (int i = 0; i < both; ++i) {
    if (first.settings(i) == other.settings(i)) continue;
    return absl::StrCat("the setting ", Setting(other.settings(i)),
                        " instead of ", Setting(first.settings(i)));
  }
  if (first.settings_size() > both) {
    return absl::StrCat("no setting ", Setting(first.settings(both)));
  }
  return other.settings_size() == both
             ? ""
             : absl::StrCat("the setting ", Setting(other.settings(both)),
                            " too many");
}

}  // namespace

bool OtherData(uint32_t one, uint32_t other) {
  return one != 0 && other != 0 && one != other;
}

absl::Status ResolveLength(const v1::JobSpec& job,
                           v1::DeclareModelRequest* model) {
  if (!job.has_program()) return absl::OkStatus();
  if (job.training().has_steps()) {
    const int64_t steps = job.training().steps();
    if (model->total_steps() == kOpenEnd) model->set_total_steps(steps);
    if (model->total_steps() == steps) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the program takes ", model->total_steps(),
                     " steps, but training.steps of the job is ", steps));
  }
  const std::string length =
      OpenLength(job.training().learning_rate_schedule());
  if (model->total_steps() != kOpenEnd || length.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "training.learning_rate_schedule.", length,
      " is missing: the schedule lasts as long as the job, and the program "
      "does not say how many steps it takes; set it, or training.steps"));
}

std::string DeclarationDifference(const v1::DeclareModelRequest& first,
                                  const v1::DeclareModelRequest& other) {
  if (first.parameters_size() != other.parameters_size()) {
    return absl::StrCat(other.parameters_size(), " parameters instead of ",
                        first.parameters_size());
  }
  for (int i = 0; i < first.parameters_size(); ++i) {
    if (first.parameters(i).SerializeAsString() ==
        other.parameters(i).SerializeAsString()) {
      continue;
    }
    const std::string wanted = Describe(first.parameters(i));
    const std::string came = Describe(other.parameters(i));
    if (wanted != came) {
      return absl::StrCat("parameter ", i, " as ", came, " instead of ",
                          wanted);
    }
    // The other fields: who holds the parameter, and which slice of the whole
    // it is.
    const std::string all_wanted = first.parameters(i).ShortDebugString();
    const std::string all_came = other.parameters(i).ShortDebugString();
    if (all_wanted != all_came) {
      return absl::StrCat("parameter ", i, " as {", all_came, "} instead of {",
                          all_wanted, "}");
    }
  }
  if (first.total_steps() != other.total_steps()) {
    return absl::StrCat(StepsText(other.total_steps()), " steps instead of ",
                        StepsText(first.total_steps()));
  }
  if (first.steps_per_epoch() != other.steps_per_epoch()) {
    return absl::StrCat(other.steps_per_epoch(), " steps an epoch instead of ",
                        first.steps_per_epoch());
  }
  if (OtherData(first.data_checksum(), other.data_checksum())) {
    return absl::StrFormat("training data with checksum %08x instead of %08x",
                           other.data_checksum(), first.data_checksum());
  }
  if (OtherData(first.evaluation_checksum(), other.evaluation_checksum())) {
    return absl::StrFormat(
        "validation and test data with checksum %08x instead of %08x",
        other.evaluation_checksum(), first.evaluation_checksum());
  }
  return SettingsDifference(first, other);
}

}  // namespace tributary
