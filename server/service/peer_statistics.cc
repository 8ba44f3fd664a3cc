// SPDX-License-Identifier: Apache-2.0
#include "server/service/peer_statistics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutation.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/header_checksum.h"
#include "common/wire/tensor_frame.h"
#include "server/service/served_plan.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr char kMethod[] = "/tributary.v1.ParameterService/ReadStatistics";

}  // namespace

grpc::ByteBuffer EncodeStatistics(absl::Span<const double> values) {
  const size_t bytes = values.size() * sizeof(double);
  v1::StatisticsResponse response;
  response.set_count(values.size());
  response.set_crc32c(Crc32c(values.data(), bytes));
  SignHeader(&response);
  return EncodeFrame(response, {grpc::Slice(values.data(), bytes)});
}

absl::StatusOr<std::vector<double>> DecodeStatistics(
    const grpc::ByteBuffer& message) {
  v1::StatisticsResponse response;
  Payload payload;
  if (const absl::Status decoded = DecodeFrame(message, &response, &payload);
      !decoded.ok()) {
    return absl::DataLossError(decoded.message());
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckHeader(response));
  if (payload.size() / sizeof(double) != response.count() ||
      payload.size() % sizeof(double) != 0) {
    return absl::DataLossError(
        absl::StrCat(payload.size(), " bytes for ", response.count(), " sums"));
  }
  std::vector<double> values(response.count());
  payload.CopyTo(values.data());
  if (Crc32c(values.data(), payload.size()) != response.crc32c() &&
      !TRIBUTARY_MUTATED("sums-unchecked")) {
    return absl::DataLossError("the sums do not fit their checksum");
  }
  return values;
}

// One call to one peer, repeated until the peer answers.
class PeerStatistics::Call final : public CompletionTag {
 public:
  Call(std::shared_ptr<PeerStatistics> owner,
       const v1::StatisticsRequest& request)
      : owner_(std::move(owner)), request_(request) {
    SignHeader(&request_);
    owner_->calls_.insert(this);
  }
  ~Call() override { owner_->calls_.erase(this); }

  void Cancel() {
    call_->Cancel();
    if (alarm_) alarm_->Cancel();
  }

  void Start() {
    waiting_ = false;
    call_ = owner_->outgoing_->Start(
        static_cast<int>(request_.shard()), kMethod, EncodeFrame(request_, {}),
        kPeerRetryPolicy.hold + kPeerRetryPolicy.margin, this);
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
    TRIBUTARY_ASSIGN_OR_RETURN(const grpc::ByteBuffer answer,
                               call_->TakeAnswer());
    TRIBUTARY_ASSIGN_OR_RETURN(std::vector<double> values,
                               DecodeStatistics(answer));
    owner_->deliver_(request_, std::move(values));
    return absl::OkStatus();
  }

  void Retry(const absl::Status& status) {
    const bool again = RetryPolicy::Repeatable(status);
    spdlog::warn("statistics of step {} from shard {}: {}{}",
                 request_.step() + 1, request_.shard(),
                 std::string(status.message()), again ? "; asking again" : "");
    if (!again) {
      delete this;
      return;
    }
    waiting_ = true;
    alarm_ = owner_->outgoing_->SetAlarm(kPeerRetryPolicy.longest_pause, this);
  }

  const std::shared_ptr<PeerStatistics> owner_;
  v1::StatisticsRequest request_;
  bool waiting_ = false;
  std::unique_ptr<OutgoingCalls::Call> call_;
  std::unique_ptr<OutgoingCalls::Alarm> alarm_;
};

void PeerStatistics::Cancel() {
  cancelled_ = true;
  for (Call* call : calls_) call->Cancel();
}

void PeerStatistics::Ask(const v1::StatisticsRequest& request) {
  if (!cancelled_) (new Call(shared_from_this(), request))->Start();
}

}  // namespace tributary
