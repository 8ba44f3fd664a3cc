#include "server/aggregate/gradient_aggregator.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace tributary {
namespace {

// A replacement of a worker computes the same bytes, so the incarnation is no
// part of the comparison: it is what fences.
bool SameBytes(const Contribution& a, const Contribution& b) {
  return a.crc32c == b.crc32c && a.samples == b.samples;
}

}  // namespace

GradientAggregator::GradientAggregator(int num_workers)
    : num_workers_(num_workers),
      clock_(num_workers),
      received_(num_workers, false),
      open_(num_workers),
      committed_(num_workers),
      fence_(num_workers, 0) {}

GradientAggregator::Verdict GradientAggregator::Add(Contribution contribution) {
  const uint32_t rank = contribution.rank;
  TRIBUTARY_CHECK(rank < static_cast<uint32_t>(num_workers_));
  if (contribution.incarnation < fence_[rank]) return Verdict::kFenced;
  if (contribution.step > step_) return Verdict::kTooNew;
  if (contribution.step < step_ - 1 || contribution.step < 0) {
    return Verdict::kTooOld;
  }
  const bool committed = contribution.step < step_;
  if (committed || received_[rank]) {
    const Contribution& held = committed ? committed_[rank] : open_[rank];
    if (!SameBytes(contribution, held)) return Verdict::kConflict;
    fence_[rank] = contribution.incarnation;
    return committed ? Verdict::kCommitted : Verdict::kHeld;
  }
  fence_[rank] = contribution.incarnation;
  received_[rank] = true;
  open_[rank] = std::move(contribution);
  clock_.Advance(static_cast<int>(rank));
  return Verdict::kAdded;
}

std::vector<int> GradientAggregator::MissingRanks() const {
  std::vector<int> missing;
  for (int rank = 0; rank < num_workers_; ++rank) {
    if (!received_[rank]) missing.push_back(rank);
  }
  return missing;
}

std::vector<float> GradientAggregator::Weights() const {
  double total = 0;
  for (const Contribution& c : open_) total += static_cast<double>(c.samples);
  std::vector<float> weights(num_workers_, 0.0f);
  for (int rank = 0; rank < num_workers_; ++rank) {
    if (open_[rank].samples > 0) {
      weights[rank] =
          static_cast<float>(static_cast<double>(open_[rank].samples) / total);
    }
  }
  return weights;
}

void GradientAggregator::Commit() {
  for (int rank = 0; rank < num_workers_; ++rank) {
    open_[rank].payload = Payload();
    committed_[rank] = std::exchange(open_[rank], Contribution());
    received_[rank] = false;
  }
  ++step_;
}

}  // namespace tributary
