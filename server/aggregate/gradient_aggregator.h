// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/wire/payload.h"
#include "server/sync/vector_clock.h"

namespace tributary {

// One worker's gradient of one block for one step. (rank, incarnation, step,
// crc) identifies it within the block; the payload shares the memory that was
// received.
struct Contribution {
  uint32_t rank = 0;
  uint64_t incarnation = 0;
  int64_t step = 0;
  uint64_t samples = 0;  // weight in the average; 0: no payload
  // Samples of all ranks in this step, at most kMaxTotalSamples; 0: not
  // announced.
  uint64_t total_samples = 0;
  uint32_t crc32c = 0;
  int64_t base_version = 0;  // version of the weights that it was computed from
  // The rate of each parameter group in this step (LearningRates). Empty: the
  // job's schedule gives the rates.
  std::vector<double> learning_rates = {};
  Payload payload = {};
  // The payload lies in the worker's memory; crc32c was not sent: the server
  // has computed it.
  bool in_shared_memory = false;
};

// Holds the contributions to a block's open step until they are committed.
// Gathered steps hold one contribution of every rank; otherwise each
// contribution is committed as it comes. A contribution may arrive any number
// of times and counts once. A plain object: ParameterShard's block lock guards
// it.
//
// In a gathered step that waits for every rank, contributions may announce the
// samples of all ranks. Then the weights are known before all ranks have
// contributed, and the contributions of the lowest ranks may be added before
// the others arrive (StepGradient). The samples of a step that is complete add
// up to the total that was announced: a contribution that contradicts it is
// refused.
//
// The contributions to a gathered step bring the same learning rates, bit for
// bit, or none of them brings any.
class GradientAggregator {
 public:
  struct Options {
    int num_workers = 1;
    bool gathers = true;      // SyncPolicy::gathers()
    bool drops_late = false;  // SyncPolicy::drops_late()
    // [rank]: whether the rank contributes to the block; empty: all do. A rank
    // that does not contribute counts as received, without samples. Gathered
    // steps only.
    std::vector<bool> members = {};
    // [rank]: the first incarnation that is not fenced from the start; empty:
    // none is fenced.
    std::vector<uint64_t> fences = {};
  };
  enum class Verdict {
    kAdded,       // new
    kHeld,        // a repetition; its step is still open
    kCommitted,   // a repetition; its step has been applied
    kLate,        // its step was applied without it: dropped
    kConflict,    // same rank and step, but other bytes, samples or rates
    kFenced,      // from an incarnation that has been replaced
    kTooOld,      // before the rank's last committed step
    kTooNew,      // beyond the step that is wanted of the rank
    kWrongTotal,  // contradicts the total of samples that was announced
    kWrongRates,  // brings other learning rates than RatesOrigin()
  };

  explicit GradientAggregator(const Options& options);

  bool IsMember(int rank) const {
    return options_.members.empty() || options_.members[rank];
  }

  // Ranks that contribute.
  int num_members() const;

  // Forgets all contributions and records that every rank has finished `steps`
  // steps. The fences are those of the options again.
  void StartAt(int64_t steps);

  // Only kAdded changes what is held. Accepting a repetition from a newer
  // incarnation raises the fence. `rank` must be a member and below
  // num_workers.
  Verdict Add(Contribution contribution);

  // Fences the rank's incarnations before this one. False: this incarnation is
  // fenced itself.
  //
  // `recomputes`: this incarnation computes other bits than earlier ones, for
  // example because it runs on another kind of device. Its rank's contribution
  // to the open step is dropped, so that this incarnation sends it again. If
  // the contribution has been added, or its step is being applied or has been
  // applied, the earlier bits count; this incarnation's contribution is
  // acknowledged without comparing bytes.
  bool Fence(int rank, uint64_t incarnation, bool recomputes = false);

  // Whether another process has taken the rank from this incarnation.
  bool IsFenced(int rank, uint64_t incarnation) const {
    return incarnation < fence_[rank];
  }

  // The step that the rank has to contribute to next, from 0.
  int64_t wanted_step(int rank) const { return applied_.steps(rank); }
  // Steps that each rank has contributed to, and steps of each rank that are in
  // the weights. When a gathered step is applied without a rank, it counts as
  // applied for that rank too.
  const VectorClock& contributed() const { return contributed_; }
  const VectorClock& applied() const { return applied_; }
  // Gathered steps: the ranks whose contribution to the open step is missing.
  // Otherwise: the ranks that are behind the furthest rank.
  std::vector<int> MissingRanks() const;

  // By rank; a missing contribution has no samples.
  const std::vector<Contribution>& contributions() const { return open_; }
  uint64_t held_bytes() const;  // of payloads

  // Each rank's samples divided by all ranks' samples, in rank order; all 0
  // when no rank had a sample.
  std::vector<float> Weights() const;

  // Samples of all ranks in the open step; 0: not announced.
  uint64_t announced_samples() const { return announced_samples_; }
  // Samples that have arrived; at most UINT64_MAX.
  uint64_t received_samples() const;
  // All ranks below the returned one have contributed to the open step.
  int arrived() const;
  // All ranks below the returned one were added: their payloads are gone.
  int added() const { return added_; }
  // Records that the ranks below `end`, which is at most arrived(), were added;
  // releases their payloads.
  void MarkAdded(int end);

  // Whether any rank had a sample.
  bool has_samples() const;

  // The contribution to the open step whose learning rates the others must
  // have; null: none has come.
  const Contribution* RatesOrigin() const;
  // The learning rates of the open step; empty: the schedule gives the rates.
  const std::vector<double>& learning_rates() const;

  // The open step is being applied: contributions of further ranks are refused.
  void Close() { closed_ = true; }
  // Ends the open step: releases the payloads, remembers the identities.
  void Commit();

 private:
  void OpenStep();
  bool WaitsForAll() const { return options_.gathers && !options_.drops_late; }
  // False: the verdict is kWrongTotal.
  bool FitsTotal(const Contribution& contribution) const;
  // False: the verdict is kWrongRates.
  bool FitsRates(const Contribution& contribution) const;
  Verdict Repeated(const Contribution& contribution, const Contribution& held,
                   Verdict same);

  const Options options_;
  VectorClock contributed_;
  VectorClock applied_;
  bool closed_ = false;
  uint64_t announced_samples_ = 0;
  int added_ = 0;
  std::vector<bool> received_;
  std::vector<Contribution> open_;
  std::vector<Contribution> committed_;  // each rank's last, without payload
  std::vector<uint64_t> fence_;          // each rank's newest incarnation
  // By rank: contributions of this incarnation and later ones may differ in
  // bits from those of earlier ones. 0: no contributions may differ.
  std::vector<uint64_t> recomputes_since_;
};

}  // namespace tributary
