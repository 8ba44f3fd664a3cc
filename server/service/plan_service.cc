// SPDX-License-Identifier: Apache-2.0
#include "server/service/plan_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "spdlog/spdlog.h"

namespace tributary {

void PlanService::AddStatistics(const v1::StatisticsRequest& request,
                                std::vector<double> values) {
  const auto served = handlers_.served();
  if (!served || served->plan().epoch() != request.plan_epoch()) return;
  if (absl::Status status = served->AddStatistics(request, std::move(values));
      !status.ok()) {
    spdlog::error("{}", std::string(status.message()));
  }
}

absl::Status PlanService::Serve(const v1::Plan& plan, PartitionPlan partition,
                                ShardSetup setup, const Restore& restore) {
  if (setup.shard < 0 || setup.shard >= plan.servers_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shard ", setup.shard, " of ", plan.servers_size(), " servers"));
  }
  {
    absl::MutexLock lock(&mu_);
    if (plan.epoch() <= last_epoch_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "plan epoch ", plan.epoch(), " comes after epoch ", last_epoch_));
    }
    last_epoch_ = plan.epoch();
  }
  EndPlan();
  const auto peers = std::make_shared<PeerStatistics>(
      options_.connect(plan),
      [this](const v1::StatisticsRequest& request, std::vector<double> values) {
        AddStatistics(request, std::move(values));
      });
  const auto served = std::make_shared<ServedPlan>(
      plan, std::move(partition), std::move(setup),
      [peers](const v1::StatisticsRequest& request) { peers->Ask(request); });
  if (restore.load_block) {
    TRIBUTARY_RETURN_IF_ERROR(served->store().Restore(
        plan.start_step(), restore.skipped_steps, restore.load_block));
    if (restore.on_loaded) TRIBUTARY_RETURN_IF_ERROR(restore.on_loaded());
  }
  absl::MutexLock lock(&mu_);
  peers_ = peers;
  handlers_.Serve(served);
  return absl::OkStatus();
}

void PlanService::EndPlan() {
  absl::MutexLock lock(&mu_);
  if (auto served = handlers_.Serve(nullptr)) {
    options_.post(
        [served = std::move(served), peers = std::exchange(peers_, nullptr)] {
          peers->Cancel();
          served->End();
        });
  }
}

absl::Status PlanService::CutAll(int64_t steps) {
  const std::shared_ptr<ServedPlan> served = handlers_.served();
  return served ? served->store().CutAll(steps)
                : absl::FailedPreconditionError("no plan is served");
}

void PlanService::Tick() {
  if (const auto served = handlers_.served()) {
    served->Tick(options_.clock->NowMicros());
  }
}

void PlanService::EndCalls() {
  if (const auto served = handlers_.served()) served->End();
}

void PlanService::CancelCalls() {
  absl::MutexLock lock(&mu_);
  if (peers_) peers_->Cancel();
}

}  // namespace tributary
