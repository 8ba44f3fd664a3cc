#include "worker/session/follower.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/host/steady_waits.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// A read asks for the weights of a coming version, so that every server answers
// when it has them. Each attempt looks this much further ahead.
constexpr int64_t kLeads[] = {0, 1, 2, 4, 8, 16, 32};
// How long a read waits for a coming version. Training may have paused.
constexpr absl::Duration kLeadTime = absl::Seconds(1);
constexpr absl::Duration kNewPlanWait = absl::Milliseconds(200);

absl::Status Ended(const absl::Status& status) {
  return absl::OutOfRangeError(
      absl::IsAborted(status)
          ? absl::StrCat("the job has failed: ", status.message())
          : std::string(status.message()));
}

bool SaysEnd(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsAborted(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Follower>> Follower::Connect(Options options) {
  std::unique_ptr<Follower> follower(new Follower(std::move(options)));
  TRIBUTARY_ASSIGN_OR_RETURN(
      follower->coordinator_,
      CoordinatorClient::Create({.address = follower->options_.coordinator}));
  const absl::Status status = follower->TakePlan(follower->options_.timeout);
  if (SaysEnd(status)) return Ended(status);
  TRIBUTARY_RETURN_IF_ERROR(status);
  return follower;
}

absl::Status Follower::TakePlan(absl::Duration timeout) {
  TRIBUTARY_ASSIGN_OR_RETURN(v1::Plan plan,
                             coordinator_->GetPlan(epoch_ + 1, timeout));
  const uint64_t epoch = plan.epoch();
  plan.set_error_feedback(false);  // a follower encodes nothing
  ParameterClient::Options options;
  options.plan = std::move(plan);
  options.rank = ParameterClient::kObserver;
  options.step_timeout = std::min(kLeadTime, options_.timeout);
  options.transport = Transport::kGrpc;
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<ParameterClient> client,
                             ParameterClient::Connect(std::move(options)));
  absl::MutexLock lock(&mu_);
  if (cancelled_) return absl::CancelledError("the follower was cancelled");
  std::swap(client_, client);
  epoch_ = epoch;
  return absl::OkStatus();
}

const ParameterSpecs& Follower::parameters() const {
  return client_->partition().parameters();
}

absl::StatusOr<Follower::Weights> Follower::Read(int64_t min_version) {
  const absl::Duration deadline = SteadyNow() + options_.timeout;
  while (true) {
    absl::StatusOr<Weights> weights = TryRead(min_version);
    if (weights.ok() || absl::IsCancelled(weights.status())) return weights;
    // Without a new plan the coordinator says so after a while.
    const absl::Status next = TakePlan(std::min(
        kNewPlanWait, std::max(deadline - SteadyNow(), absl::ZeroDuration())));
    if (SaysEnd(next)) return Ended(next);
    if (absl::IsCancelled(next)) return next;
    if (SteadyNow() >= deadline) return weights;
  }
}

absl::StatusOr<Follower::Weights> Follower::TryRead(int64_t min_version) {
  Weights weights;
  for (const ParameterSpec& spec : parameters()) {
    weights.tensors.emplace_back(static_cast<size_t>(spec.size()));
  }
  using Kind = WantedWeights::Kind;
  TRIBUTARY_RETURN_IF_ERROR(Pull({Kind::kAtLeast, min_version}, &weights));
  for (const int64_t lead : kLeads) {
    if (weights.oldest_version == weights.newest_version) return weights;
    const absl::Status exact =
        Pull({Kind::kExactly, weights.newest_version + lead}, &weights);
    if (exact.ok()) return weights;
    // The version is gone already, or it does not come.
    if (!absl::IsOutOfRange(exact) && !absl::IsDeadlineExceeded(exact)) {
      return exact;
    }
    TRIBUTARY_RETURN_IF_ERROR(Pull({Kind::kAtLeast, min_version}, &weights));
  }
  return weights;
}

absl::Status Follower::Pull(const WantedWeights& wanted, Weights* weights) {
  std::vector<float*> tensors;
  for (std::vector<float>& tensor : weights->tensors) {
    tensors.push_back(tensor.data());
  }
  TRIBUTARY_RETURN_IF_ERROR(client_->Pull(wanted, absl::MakeSpan(tensors)));
  weights->oldest_version = client_->oldest_version();
  weights->newest_version = client_->newest_version();
  return absl::OkStatus();
}

void Follower::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  coordinator_->Cancel();
  if (client_ != nullptr) client_->Cancel("the follower was cancelled");
}

}  // namespace tributary
