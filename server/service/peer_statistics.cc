#include "server/service/peer_statistics.h"

#include <grpcpp/alarm.h>

#include <utility>

#include "common/status/status_macros.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"
#include "common/wire/header_checksum.h"
#include "common/wire/retry_policy.h"
#include "common/wire/tensor_frame.h"
#include "server/service/raw_call.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr char kMethod[] = "/tributary.v1.ParameterService/ReadStatistics";
constexpr int kWaitMs = 10'000;
constexpr int kMarginMs = 5'000;
constexpr int kRetryMs = 50;

}  // namespace

// One call to one peer, repeated until the peer answers.
class PeerStatistics::Call final : public CompletionTag {
 public:
  Call(PeerStatistics* owner, int shard, int64_t step, StatisticsKind kind)
      : owner_(owner), shard_(shard), step_(step), kind_(kind) {
    owner_->calls_.insert(this);
  }
  ~Call() override { owner_->calls_.erase(this); }

  void Cancel() {
    context_->TryCancel();
    alarm_.Cancel();
  }

  void Start() {
    v1::StatisticsRequest request;
    request.set_job_id(owner_->job_id_);
    request.set_plan_epoch(owner_->plan_epoch_);
    request.set_shard(shard_);
    request.set_step(step_);
    request.set_phase(kind_ == StatisticsKind::kTrustRatio ? v1::TRUST_RATIO
                                                           : v1::GRADIENT_NORM);
    request.set_wait_ms(kWaitMs);
    SignHeader(&request);
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(
        DeadlineAfter(absl::Milliseconds(kWaitMs + kMarginMs)));
    reader_ = owner_->stubs_[shard_]->PrepareUnaryCall(
        context_.get(), kMethod, EncodeFrame(request, {}), owner_->queue_);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, this);
    waiting_ = false;
  }

  void Proceed(bool ok) override {
    if (ok && !owner_->cancelled_) {
      if (waiting_) return Start();
      if (const absl::Status status = Take(); !status.ok()) {
        return Retry(status);
      }
    }
    delete this;
  }

 private:
  // Decodes and delivers the response.
  absl::Status Take() {
    if (!status_.ok()) return ToAbslStatus(status_);
    v1::StatisticsResponse response;
    Payload none;
    if (const absl::Status decoded = DecodeFrame(response_, &response, &none);
        !decoded.ok()) {
      return absl::DataLossError(decoded.message());
    }
    TRIBUTARY_RETURN_IF_ERROR(CheckHeader(response));
    owner_->deliver_(step_, kind_, shard_,
                     {response.values().begin(), response.values().end()});
    return absl::OkStatus();
  }

  void Retry(const absl::Status& status) {
    const bool again = RetryPolicy::Repeatable(status);
    spdlog::warn("statistics of step {} from shard {}: {}{}", step_ + 1, shard_,
                 std::string(status.message()), again ? "; asking again" : "");
    if (!again) {
      delete this;
      return;
    }
    waiting_ = true;
    alarm_.Set(owner_->queue_, DeadlineAfter(absl::Milliseconds(kRetryMs)),
               static_cast<CompletionTag*>(this));
  }

  PeerStatistics* const owner_;
  const int shard_;
  const int64_t step_;
  const StatisticsKind kind_;
  bool waiting_ = false;
  grpc::Alarm alarm_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
};

PeerStatistics::PeerStatistics(const v1::Plan& plan,
                               const PartitionPlan& partition, int shard,
                               grpc::CompletionQueue* queue, Deliver deliver)
    : job_id_(plan.job_id()),
      plan_epoch_(plan.epoch()),
      queue_(queue),
      deliver_(std::move(deliver)) {
  for (int s = 0; s < plan.servers_size(); ++s) {
    const bool asked = s != shard && partition.shard_elements(s) > 0;
    stubs_.push_back(asked ? std::make_unique<grpc::GenericStub>(
                                 DataChannel(plan.servers(s)))
                           : nullptr);
  }
}

void PeerStatistics::Cancel() {
  cancelled_ = true;
  for (Call* call : calls_) call->Cancel();
}

void PeerStatistics::Fetch(int64_t step, StatisticsKind kind) {
  if (cancelled_) return;
  for (size_t s = 0; s < stubs_.size(); ++s) {
    if (stubs_[s]) (new Call(this, static_cast<int>(s), step, kind))->Start();
  }
}

}  // namespace tributary
