#include "coordinator/core/model_declaration.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/host/address.h"
#include "common/job/job_options.h"
#include "common/plan/partition_plan.h"
#include "common/plan/plan_codec.h"

namespace tributary {
namespace {

// Two keep a link busy; more let the workers' flows drift apart
// (docs/decisions/block-size.md).
constexpr uint32_t kUnansweredBlocks = 2;

std::string Describe(const v1::ParameterSpec& spec) {
  return absl::StrCat("\"", spec.name(), "\" [",
                      absl::StrJoin(spec.shape(), ", "), "]");
}

bool IsLoopback(absl::string_view address) {
  const absl::string_view host = LookupHostOf(address);
  return host == "localhost" || host == "::1" || absl::StartsWith(host, "127.");
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
  return MakePartitionPlan(
             PlanOf(model, job,
                    std::vector<std::string>(job.cluster().servers())))
      .status();
}

bool OtherData(uint32_t one, uint32_t other) {
  return one != 0 && other != 0 && one != other;
}

std::string DeclarationDifference(const v1::DeclareModelRequest& first,
                                  const v1::DeclareModelRequest& other) {
  if (first.parameters_size() != other.parameters_size()) {
    return absl::StrCat(other.parameters_size(), " parameters instead of ",
                        first.parameters_size());
  }
  for (int i = 0; i < first.parameters_size(); ++i) {
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
    return absl::StrCat(other.total_steps(), " steps instead of ",
                        first.total_steps());
  }
  if (first.steps_per_epoch() != other.steps_per_epoch()) {
    return absl::StrCat(other.steps_per_epoch(), " steps an epoch instead of ",
                        first.steps_per_epoch());
  }
  if (OtherData(first.data_checksum(), other.data_checksum())) {
    return absl::StrFormat("training data of checksum %08x instead of %08x",
                           other.data_checksum(), first.data_checksum());
  }
  return "";
}

}  // namespace tributary
