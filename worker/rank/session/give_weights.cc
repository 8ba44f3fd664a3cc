// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/give_weights.h"

#include <vector>

#include "common/job/job_options.h"
#include "common/plan/model_cut.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {

absl::Status GiveWeights(Member& member, ParameterMemory& model, Ops& ops,
                         const v1::Plan& plan, int64_t step) {
  const Strategy strategy = StrategyOf(member.job());
  if (strategy.uses_servers()) return absl::OkStatus();
  const DeviceMesh mesh = strategy.mesh();
  const ParameterSpecs planned = FromProto(plan.parameters());
  const int rank = static_cast<int>(member.index());
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::vector<int> places,
      PlacesInPlan(model.parameters(), planned, mesh, rank));
  for (size_t p = 0; p < places.size(); ++p) {
    const ParameterSpec& spec = planned[places[p]];
    if (FirstHolder(spec.holders, mesh) != rank) continue;
    std::vector<float> tensor(spec.size());
    ops.CopyOut(tensor.data(), model.weight(static_cast<int>(p)),
                tensor.size() * sizeof(float));
    TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(ops));
    TRIBUTARY_RETURN_IF_ERROR(
        member.results().PutWeights(plan.epoch(), step, places[p], tensor));
  }
  return absl::OkStatus();
}

}  // namespace tributary
