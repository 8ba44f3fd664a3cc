// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/follower.h"

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
// How long one attempt waits for a version, which may never come, because
// training may have paused.
constexpr absl::Duration kAttempt = absl::Seconds(1);
constexpr absl::Duration kPause = absl::Milliseconds(100);
constexpr absl::Duration kWatch = absl::Seconds(30);

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
      CoordinatorClient::Create({.address = follower->options_.coordinator,
                                 .proof = follower->options_.proof}));
  v1::RegisterRequest observes;
  observes.set_role(v1::ROLE_OBSERVER);
  const absl::StatusOr<v1::RegisterResponse> admitted =
      follower->coordinator_->Register(observes, follower->options_.timeout);
  if (SaysEnd(admitted.status())) return Ended(admitted.status());
  TRIBUTARY_RETURN_IF_ERROR(admitted.status());
  follower->coordinator_->SetTicket(admitted->ticket());
  follower->options_.proof =
      follower->options_.proof.WithTicket(admitted->ticket());
  absl::StatusOr<v1::Plan> plan = follower->coordinator_->GetPlan(
      /*min_epoch=*/1, follower->options_.timeout);
  if (SaysEnd(plan.status())) return Ended(plan.status());
  TRIBUTARY_RETURN_IF_ERROR(plan.status());
  TRIBUTARY_RETURN_IF_ERROR(follower->Use(*std::move(plan)));
  follower->watch_ = std::thread([self = follower.get()] { self->Watch(); });
  return follower;
}

Follower::~Follower() {
  if (coordinator_ != nullptr) coordinator_->Cancel();
  if (watch_.joinable()) watch_.join();
}

void Follower::Watch() {
  while (true) {
    uint64_t epoch = 0;
    {
      absl::MutexLock lock(&mu_);
      epoch = epoch_;
    }
    absl::StatusOr<v1::Plan> plan = coordinator_->GetPlan(epoch + 1, kWatch);
    absl::MutexLock lock(&mu_);
    if (plan.ok()) {
      epoch_ = plan->epoch();
      next_ = *std::move(plan);
    } else if (SaysEnd(plan.status())) {
      end_ = Ended(plan.status());
    } else if (absl::IsCancelled(plan.status())) {
      if (end_.ok()) end_ = absl::CancelledError("the follower was cancelled");
    } else {
      // No news, no coordinator, or the coordinator refuses at once: ask later.
      const bool never = false;
      AwaitFor(&mu_, absl::Condition(&never), kPause);
      continue;
    }
    client_->Cancel("the job has gone on");
    if (!end_.ok()) return;
  }
}

absl::Status Follower::Use(v1::Plan plan) {
  const uint64_t epoch = plan.epoch();
  plan.set_error_feedback(false);  // a follower encodes nothing
  ParameterClient::Options options;
  options.plan = std::move(plan);
  options.rank = ParameterClient::kObserver;
  options.proof = options_.proof;
  options.step_timeout = std::min(kAttempt, options_.timeout);
  options.transport = Transport::kGrpc;
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<ParameterClient> client,
                             ParameterClient::Connect(std::move(options)));
  absl::MutexLock lock(&mu_);
  std::swap(client_, client);
  epoch_ = std::max(epoch_, epoch);
  return absl::OkStatus();
}

absl::Status Follower::TakeNews() {
  std::optional<v1::Plan> plan;
  {
    absl::MutexLock lock(&mu_);
    TRIBUTARY_RETURN_IF_ERROR(end_);
    plan = std::exchange(next_, std::nullopt);
  }
  return plan ? Use(*std::move(plan)) : absl::OkStatus();
}

const ParameterSpecs& Follower::parameters() const {
  return client_->partition().parameters();
}

absl::StatusOr<Follower::Weights> Follower::Read(int64_t min_version) {
  const absl::Duration deadline = SteadyNow() + options_.timeout;
  while (true) {
    TRIBUTARY_RETURN_IF_ERROR(TakeNews());
    absl::StatusOr<Weights> weights = TryRead(min_version);
    if (weights.ok()) return weights;
    const auto news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return next_.has_value() || !end_.ok();
    };
    absl::MutexLock lock(&mu_);
    // A server can know a new plan before this follower does.
    if (!AwaitFor(&mu_, absl::Condition(&news), kPause) &&
        SteadyNow() >= deadline) {
      return weights;
    }
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
    // The version is no longer kept, or does not come in time.
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

void Follower::Cancel() { coordinator_->Cancel(); }

}  // namespace tributary
