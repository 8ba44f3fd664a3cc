// SPDX-License-Identifier: Apache-2.0
#include "common/member/result_sender.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>

#include "common/host/steady_waits.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/header_checksum.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr absl::Duration kResultTimeout = absl::Seconds(30);
constexpr absl::Duration kTellAgainTimeout = absl::Seconds(2);
constexpr size_t kPieceElements = 512 << 10;  // 2 MiB per message
constexpr int kMaxPutRestarts = 8;            // per tensor
constexpr int kMaxDamagedPieces = 8;          // per tensor

}  // namespace

absl::Status ResultSender::PutWeights(uint64_t plan_epoch, int64_t step,
                                      int parameter,
                                      const std::vector<float>& tensor) {
  int restarts = 0, damaged = 0;
  for (size_t begin = 0; begin < tensor.size();) {
    const size_t n = std::min(kPieceElements, tensor.size() - begin);
    v1::PutWeightsRequest request;
    request.set_rank(rank_);
    request.set_incarnation(incarnation_);
    request.set_plan_epoch(plan_epoch);
    request.set_step(step);
    request.set_parameter(static_cast<uint32_t>(parameter));
    request.set_offset(begin);
    request.set_payload(tensor.data() + begin, n * sizeof(float));
    request.set_crc32c(
        Crc32c(request.payload().data(), request.payload().size()));
    SignHeader(&request);
    const absl::Status status = client_->PutWeights(request, kResultTimeout);
    if (absl::IsDataLoss(status) && ++damaged <= kMaxDamagedPieces) continue;
    // A new coordinator has taken over and has no piece of this tensor.
    if (absl::IsOutOfRange(status) && ++restarts <= kMaxPutRestarts) {
      begin = 0;
      continue;
    }
    TRIBUTARY_RETURN_IF_ERROR(status);
    begin += n;
  }
  return absl::OkStatus();
}

absl::Status ResultSender::ReportEvaluation(int64_t step, int64_t epoch,
                                            const v1::EvaluationPart& part,
                                            Set set) {
  v1::ReportEvaluationRequest request;
  request.set_rank(rank_);
  request.set_incarnation(incarnation_);
  request.set_step(step);
  request.set_epoch(epoch);
  request.set_test(set == Set::kTest);
  *request.mutable_part() = part;
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      request.set_term(term_);
    }
    const absl::Status sent = Send(request);
    if (!absl::IsAborted(sent)) return sent;
    absl::MutexLock lock(&mu_);
    const auto followed = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return closed_ || term_ > request.term();
    };
    AwaitFor(&mu_, absl::Condition(&followed), kResultTimeout);
    if (term_ <= request.term()) return sent;
  }
}

absl::Status ResultSender::Send(const v1::ReportEvaluationRequest& request) {
  const absl::StatusOr<v1::ReportEvaluationResponse> response =
      client_->ReportEvaluation(request, kResultTimeout);
  TRIBUTARY_RETURN_IF_ERROR(response.status());
  absl::MutexLock lock(&mu_);
  if (request.term() < term_) {
    return absl::AbortedError("another coordinator has taken over meanwhile");
  }
  Keep(request, *response);
  return absl::OkStatus();
}

void ResultSender::Keep(const v1::ReportEvaluationRequest& request,
                        const v1::ReportEvaluationResponse& response) {
  kept_[{request.step(), request.test()}] = request;
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    const bool saved = response.has_saved_step() &&
                       kept->first.second == request.test() &&
                       kept->first.first <= response.saved_step();
    kept =
        saved || kept_.size() > kMaxKept ? kept_.erase(kept) : std::next(kept);
  }
}

absl::Status ResultSender::Follow(uint64_t term) {
  Key told = {std::numeric_limits<int64_t>::min(), false};
  while (true) {
    v1::ReportEvaluationRequest request;
    {
      absl::MutexLock lock(&mu_);
      const auto next = kept_.upper_bound(told);
      if (term <= term_ || next == kept_.end()) {
        term_ = std::max(term_, term);
        return absl::OkStatus();
      }
      told = next->first;
      request = next->second;
    }
    request.set_term(term);
    const absl::Status status =
        client_->ReportEvaluation(request, kTellAgainTimeout).status();
    if (MayPass(status) || absl::IsCancelled(status)) return status;
    if (!status.ok()) {
      spdlog::warn("the evaluation of step {} may be lost: {}", request.step(),
                   std::string(status.message()));
    }
  }
}

void ResultSender::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
}

}  // namespace tributary
