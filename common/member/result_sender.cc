// SPDX-License-Identifier: Apache-2.0
#include "common/member/result_sender.h"

#include <algorithm>
#include <string>

#include "common/status/status_macros.h"
#include "common/wire/crc32c.h"
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
  {
    absl::MutexLock lock(&mu_);
    evaluations_[static_cast<size_t>(set)] = request;
  }
  return client_->ReportEvaluation(request, kResultTimeout);
}

void ResultSender::ReportEvaluationAgain() {
  std::array<Evaluation, 2> evaluations;
  {
    absl::MutexLock lock(&mu_);
    evaluations = evaluations_;
  }
  for (const Evaluation& evaluation : evaluations) {
    if (!evaluation) continue;
    const absl::Status told =
        client_->ReportEvaluation(*evaluation, kTellAgainTimeout);
    if (!told.ok()) {
      spdlog::warn("the evaluation of step {} may be lost: {}",
                   evaluation->step(), std::string(told.message()));
    }
  }
}

}  // namespace tributary
