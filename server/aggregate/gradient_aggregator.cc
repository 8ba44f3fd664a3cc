// SPDX-License-Identifier: Apache-2.0
#include "server/aggregate/gradient_aggregator.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutation.h"
#include "common/base/sample_weights.h"

namespace tributary {
namespace {

Contribution NoneYet() {
  Contribution none;
  none.step = -1;
  return none;
}

bool SameRates(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
        return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
      });
}

// The incarnation is not compared: a replacement worker on the same kind of
// device computes the same bytes. The incarnation only decides whether a
// contribution is fenced.
bool SameContent(const Contribution& a, const Contribution& b) {
  return a.crc32c == b.crc32c && a.samples == b.samples &&
         SameRates(a.learning_rates, b.learning_rates);
}

}  // namespace

GradientAggregator::GradientAggregator(const Options& options)
    : options_(options),
      contributed_(options.num_workers),
      applied_(options.num_workers) {
  StartAt(0);
}

int GradientAggregator::num_members() const {
  int members = 0;
  for (int rank = 0; rank < options_.num_workers; ++rank) {
    if (IsMember(rank)) ++members;
  }
  return members;
}

void GradientAggregator::StartAt(int64_t steps) {
  const int workers = options_.num_workers;
  contributed_ = VectorClock(workers, steps);
  applied_ = VectorClock(workers, steps);
  closed_ = false;
  received_.assign(workers, false);
  open_.assign(workers, Contribution());
  committed_.assign(workers, NoneYet());
  fence_ = options_.fences;
  if (TRIBUTARY_MUTATED("fences-begin-at-zero")) fence_.clear();
  fence_.resize(workers, 0);
  recomputes_since_.assign(workers, 0);
  OpenStep();
}

void GradientAggregator::OpenStep() {
  announced_samples_ = 0;
  added_ = 0;
  for (int rank = 0; rank < options_.num_workers; ++rank) {
    if (IsMember(rank)) continue;
    received_[rank] = true;
    contributed_.Advance(rank);
  }
}

GradientAggregator::Verdict GradientAggregator::Add(Contribution contribution) {
  const uint32_t rank = contribution.rank;
  TRIBUTARY_CHECK(rank < static_cast<uint32_t>(options_.num_workers));
  if (contribution.incarnation < fence_[rank] &&
      !TRIBUTARY_MUTATED("no-incarnation-fence")) {
    return Verdict::kFenced;
  }
  const int64_t wanted = wanted_step(static_cast<int>(rank));
  if (contribution.step > wanted) return Verdict::kTooNew;
  if (contribution.step == wanted && received_[rank] &&
      !TRIBUTARY_MUTATED("open-repetition-counts")) {
    return Repeated(contribution, open_[rank], Verdict::kHeld);
  }
  if (contribution.step == wanted && closed_ &&
      !TRIBUTARY_MUTATED("closed-step-takes-more")) {
    return Verdict::kLate;
  }
  if (contribution.step == wanted ||
      (contribution.step + 1 == wanted && !received_[rank] &&
       TRIBUTARY_MUTATED("late-repetition-counts"))) {
    if (!FitsTotal(contribution)) return Verdict::kWrongTotal;
    if (!FitsRates(contribution)) return Verdict::kWrongRates;
    if (WaitsForAll() && contribution.total_samples > 0) {
      announced_samples_ = contribution.total_samples;
    }
    fence_[rank] = contribution.incarnation;
    received_[rank] = true;
    open_[rank] = std::move(contribution);
    contributed_.Advance(static_cast<int>(rank));
    return Verdict::kAdded;
  }
  if (contribution.step >= 0 && contribution.step == committed_[rank].step) {
    return Repeated(contribution, committed_[rank], Verdict::kCommitted);
  }
  return options_.drops_late && contribution.step >= 0 ? Verdict::kLate
                                                       : Verdict::kTooOld;
}

// Every contribution is compared with the total, also while none is added
// early, so that whether a job runs does not depend on the order of arrival.
bool GradientAggregator::FitsTotal(const Contribution& contribution) const {
  const uint64_t announced = contribution.total_samples;
  const uint64_t total =
      announced_samples_ > 0 ? announced_samples_ : announced;
  if (!WaitsForAll() || total == 0) return true;
  if (announced > 0 && announced != total) return false;
  const uint64_t received = received_samples();
  if (received > total || contribution.samples > total - received) return false;
  const bool last = std::count(received_.begin(), received_.end(), false) == 1;
  return !last || received + contribution.samples == total;
}

bool GradientAggregator::FitsRates(const Contribution& contribution) const {
  const Contribution* const origin = RatesOrigin();
  return !options_.gathers || origin == nullptr ||
         SameRates(contribution.learning_rates, origin->learning_rates);
}

const Contribution* GradientAggregator::RatesOrigin() const {
  for (int rank = 0; rank < options_.num_workers; ++rank) {
    if (received_[rank] && IsMember(rank)) return &open_[rank];
  }
  return nullptr;
}

const std::vector<double>& GradientAggregator::learning_rates() const {
  static const auto* const none = new std::vector<double>;
  const Contribution* const origin = RatesOrigin();
  return origin == nullptr ? *none : origin->learning_rates;
}

uint64_t GradientAggregator::received_samples() const {
  uint64_t sum = 0;
  for (const Contribution& c : open_) {
    sum = c.samples > UINT64_MAX - sum ? UINT64_MAX : sum + c.samples;
  }
  return sum;
}

int GradientAggregator::arrived() const {
  const auto missing =
      std::find(received_.begin() + added_, received_.end(), false);
  return static_cast<int>(missing - received_.begin());
}

void GradientAggregator::MarkAdded(int end) {
  for (; added_ < end; ++added_) open_[added_].payload = Payload();
}

bool GradientAggregator::Fence(int rank, uint64_t incarnation,
                               bool recomputes) {
  if (incarnation < fence_[rank]) return false;
  fence_[rank] = incarnation;
  if (!recomputes) return true;
  recomputes_since_[rank] = incarnation;
  if (!options_.gathers || !received_[rank] || closed_ || rank < added_ ||
      open_[rank].incarnation >= incarnation || !IsMember(rank)) {
    return true;
  }
  open_[rank] = Contribution();
  received_[rank] = false;
  contributed_.Retreat(rank);
  return true;
}

// Judges a second contribution of a rank to a step. Its bytes may differ from
// the held one's in two cases: where a step does not wait for every rank, a
// replacement may have computed from other weights; and a replacement on
// another kind of device computes other bits. In both cases the held
// contribution counts.
GradientAggregator::Verdict GradientAggregator::Repeated(
    const Contribution& contribution, const Contribution& held, Verdict same) {
  const uint64_t since = recomputes_since_[contribution.rank];
  const bool may_differ =
      !options_.gathers || options_.drops_late ||
      (contribution.incarnation >= since && held.incarnation < since);
  const bool replaced =
      may_differ && contribution.incarnation > held.incarnation;
  if (!SameContent(contribution, held) && !replaced) return Verdict::kConflict;
  fence_[contribution.rank] = contribution.incarnation;
  return same;
}

std::vector<int> GradientAggregator::MissingRanks() const {
  int64_t foremost = 0;
  for (int rank = 0; rank < options_.num_workers; ++rank) {
    foremost = std::max(foremost, contributed_.steps(rank));
  }
  std::vector<int> missing;
  for (int rank = 0; rank < options_.num_workers; ++rank) {
    if (options_.gathers ? !received_[rank]
                         : contributed_.steps(rank) < foremost) {
      missing.push_back(rank);
    }
  }
  return missing;
}

uint64_t GradientAggregator::held_bytes() const {
  uint64_t bytes = 0;
  for (const Contribution& c : open_) bytes += c.payload.size();
  return bytes;
}

std::vector<float> GradientAggregator::Weights() const {
  std::vector<uint64_t> samples;
  for (const Contribution& c : open_) {
    samples.push_back(TRIBUTARY_MUTATED("equal-weights")
                          ? std::min<uint64_t>(c.samples, 1)
                          : c.samples);
  }
  return announced_samples_ > 0
             ? SampleWeights(samples, static_cast<double>(announced_samples_))
             : SampleWeights(samples);
}

bool GradientAggregator::has_samples() const {
  return std::any_of(open_.begin(), open_.end(),
                     [](const Contribution& c) { return c.samples > 0; });
}

void GradientAggregator::Commit() {
  closed_ = false;
  for (int rank = 0; rank < options_.num_workers; ++rank) {
    if (!received_[rank]) continue;
    open_[rank].payload = Payload();
    committed_[rank] = std::exchange(open_[rank], Contribution());
    if (TRIBUTARY_MUTATED("committed-forgotten")) committed_[rank] = NoneYet();
    received_[rank] = false;
    applied_.Advance(rank);
  }
  if (!options_.gathers) return;
  // Ranks that have not contributed to this step by now are too late for it.
  int64_t closed = 0;
  for (int rank = 0; rank < options_.num_workers; ++rank) {
    closed = std::max(closed, applied_.steps(rank));
  }
  applied_.AdvanceAllTo(closed);
  contributed_.AdvanceAllTo(closed);
  OpenStep();
}

}  // namespace tributary
