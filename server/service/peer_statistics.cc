#include "server/service/peer_statistics.h"

#include <grpcpp/alarm.h>

#include <utility>

#include "common/wire/channel.h"
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

// One peer's answer: asked for again until it comes.
class PeerStatistics::Call final : public CompletionTag {
 public:
  Call(PeerStatistics* owner, int shard, int64_t step, StatisticsKind kind)
      : owner_(owner), shard_(shard), step_(step), kind_(kind) {}

  void Start() {
    v1::StatisticsRequest request;
    request.set_job_id(owner_->job_id_);
    request.set_plan_epoch(owner_->plan_epoch_);
    request.set_shard(shard_);
    request.set_step(step_);
    request.set_phase(kind_ == StatisticsKind::kTrustRatio ? v1::TRUST_RATIO
                                                           : v1::GRADIENT_NORM);
    request.set_wait_ms(kWaitMs);
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(std::chrono::system_clock::now() +
                           std::chrono::milliseconds(kWaitMs + kMarginMs));
    reader_ = owner_->stubs_[shard_]->PrepareUnaryCall(
        context_.get(), kMethod, EncodeFrame(request, {}), owner_->queue_);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, this);
    waiting_ = false;
  }

  void Proceed(bool ok) override {
    if (!ok) {  // the queue is shutting down
      delete this;
    } else if (waiting_) {
      Start();
    } else if (!status_.ok()) {
      Retry();
    } else {
      Deliver();
      delete this;
    }
  }

 private:
  void Deliver() {
    v1::StatisticsResponse response;
    Payload none;
    if (absl::Status status = DecodeFrame(response_, &response, &none);
        !status.ok()) {
      spdlog::error("shard {} sent unreadable statistics: {}", shard_,
                    std::string(status.message()));
      return;
    }
    owner_->deliver_(step_, kind_, shard_,
                     {response.values().begin(), response.values().end()});
  }

  void Retry() {
    if (status_.error_code() == grpc::StatusCode::OUT_OF_RANGE ||
        status_.error_code() == grpc::StatusCode::CANCELLED) {
      delete this;  // the step is past, or the job at its end
      return;
    }
    spdlog::warn("statistics of step {} from shard {}: {}; asking again",
                 step_ + 1, shard_, status_.error_message());
    waiting_ = true;
    alarm_.Set(owner_->queue_,
               std::chrono::system_clock::now() +
                   std::chrono::milliseconds(kRetryMs),
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

PeerStatistics::PeerStatistics(const v1::Plan& plan, int shard,
                               grpc::CompletionQueue* queue, Deliver deliver)
    : job_id_(plan.job_id()),
      plan_epoch_(plan.epoch()),
      queue_(queue),
      deliver_(std::move(deliver)) {
  for (int s = 0; s < plan.servers_size(); ++s) {
    stubs_.push_back(s == shard ? nullptr
                                : std::make_unique<grpc::GenericStub>(
                                      DataChannel(plan.servers(s))));
  }
}

void PeerStatistics::Fetch(int64_t step, StatisticsKind kind) {
  for (size_t s = 0; s < stubs_.size(); ++s) {
    if (stubs_[s]) (new Call(this, static_cast<int>(s), step, kind))->Start();
  }
}

}  // namespace tributary
