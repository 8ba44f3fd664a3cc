// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/make_synchronizer.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/job/optimizer_spec.h"
#include "common/plan/model_cut.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "kernels/device.h"
#include "worker/rank/session/group_synchronizer.h"
#include "worker/rank/session/server_synchronizer.h"

namespace tributary {
namespace {

using SynchronizerOr = absl::StatusOr<std::unique_ptr<GradientSynchronizer>>;
using RateOr = absl::StatusOr<std::function<double(int64_t step)>>;

RateOr LearningRateOf(const v1::JobSpec& job, int64_t total_steps) {
  TRIBUTARY_ASSIGN_OR_RETURN(LearningRateSchedule schedule,
                             LearningRateScheduleOf(job, total_steps));
  return [schedule = std::move(schedule)](int64_t step) {
    return schedule.At(step);
  };
}

// Memory for the gradients that are sent to servers or read by them: the
// model's or, when the model is on a device, that of copies on the host. Null:
// the kernel provides none.
std::shared_ptr<SharedArena> GradientMemory(const SynchronizerParts& parts) {
  Model& model = *parts.replica->model();
  if (parts.group.ops->is_host()) return model.gradient_memory();
  size_t bytes = 1;  // a stage may have no parameters
  for (const ParameterSpec& parameter : model.parameters()) {
    bytes += SharedArena::Taken(parameter.size() * sizeof(float));
  }
  auto memory = SharedArena::Create(bytes);
  return memory.ok() ? *std::move(memory) : nullptr;
}

SynchronizerOr MakeParameterServer(const SynchronizerParts& parts,
                                   const v1::Plan& plan) {
  Member& member = *parts.group.member;
  const v1::JobSpec& job = member.job();
  ServerSynchronizerParts server;
  server.member = &member;
  server.model = parts.replica->model();
  server.ops = parts.group.ops;
  server.gradient_memory = GradientMemory(parts);
  server.total_steps = parts.steps->total_steps();
  server.all_samples = [steps = parts.steps](int64_t step) {
    return static_cast<uint64_t>(steps->AllSamples(step));
  };
  TRIBUTARY_ASSIGN_OR_RETURN(server.learning_rate,
                             LearningRateOf(job, server.total_steps));
  TRIBUTARY_ASSIGN_OR_RETURN(server.groups,
                             ParameterGroupsOf(job, server.total_steps));
  server.recomputes = parts.recomputes;
  server.on_silent_shard = parts.on_silent_shard;
  server.for_tests.client.delay_micros = parts.delay_micros;
  return MakeServerSynchronizer(server, plan);
}

// Describes this rank's part of the model to the synchronizer.
absl::StatusOr<AllReduceOptions::Part> PartOf(const SynchronizerParts& parts,
                                              const v1::Plan& plan) {
  const Replica& replica = *parts.replica;
  AllReduceOptions::Part part;
  part.planned = FromProto(plan.parameters());
  part.mesh = replica.mesh();
  part.place = replica.place();
  TRIBUTARY_ASSIGN_OR_RETURN(
      part.place_in_plan,
      PlacesInPlan(replica.model()->parameters(), part.planned, replica.mesh(),
                   static_cast<int>(parts.group.member->index())));
  const v1::TrainingSpec& training = parts.group.member->job().training();
  const bool sums = training.clip_norm() > 0 ||
                    training.nonfinite() == v1::NON_FINITE_SKIP ||
                    NeedsWholeTensors(training.optimizer());
  if (replica.mesh().model_size() == 1 || !sums) return part;
  // The group exchanges only a few doubles, so host memory is fast enough.
  GroupParts on_host = parts.group;
  on_host.ops = HostOps();
  TRIBUTARY_ASSIGN_OR_RETURN(
      part.group,
      ConnectGroup(on_host, plan,
                   {.name = absl::StrCat("model/", replica.place().data),
                    .ranks = replica.ModelRanks(),
                    .backend = v1::COLLECTIVE_BACKEND_GLOO}));
  return part;
}

SynchronizerOr MakeAllReduce(const SynchronizerParts& parts,
                             const v1::Plan& plan) {
  const v1::JobSpec& job = parts.group.member->job();
  const Replica& replica = *parts.replica;
  const DeviceMesh::Place& place = replica.place();
  GroupSynchronizerParts among;
  among.group = parts.group;
  among.model = replica.model();
  among.ranks = replica.DataRanks();
  among.name = absl::StrCat("data/", place.stage, "/", place.tensor);
  TRIBUTARY_ASSIGN_OR_RETURN(among.part, PartOf(parts, plan));
  TRIBUTARY_ASSIGN_OR_RETURN(among.learning_rate,
                             LearningRateOf(job, parts.steps->total_steps()));
  TRIBUTARY_ASSIGN_OR_RETURN(
      among.groups, ParameterGroupsOf(job, parts.steps->total_steps()));
  among.samples = [steps = parts.steps,
                   size = replica.mesh().data](int64_t step) {
    std::vector<uint64_t> samples;
    for (int rank = 0; rank < size; ++rank) {
      samples.push_back(static_cast<uint64_t>(steps->RankSamples(step, rank)));
    }
    return samples;
  };
  return MakeGroupSynchronizer(std::move(among), plan);
}

}  // namespace

SynchronizerOr MakeSynchronizer(const SynchronizerParts& parts,
                                const v1::Plan& plan) {
  return StrategyOf(parts.group.member->job()).uses_servers()
             ? MakeParameterServer(parts, plan)
             : MakeAllReduce(parts, plan);
}

}  // namespace tributary
