#pragma once

#include <cstdint>
#include <vector>

#include "common/wire/payload.h"
#include "server/sync/vector_clock.h"

namespace tributary {

// One worker's gradient of one block for one step. (rank, incarnation, step,
// crc) is its identity within the block; the payload is the received memory.
struct Contribution {
  uint32_t rank = 0;
  uint64_t incarnation = 0;
  int64_t step = 0;
  uint64_t samples = 0;  // its weight; 0: no payload
  uint32_t crc32c = 0;
  Payload payload;
};

// Holds the contributions to a block's open step until they are committed.
// Every contribution may come any number of times and counts once. A plain
// object: ParameterShard's block lock guards it.
class GradientAggregator {
 public:
  enum class Verdict {
    kAdded,      // new
    kHeld,       // the same again, its step still open
    kCommitted,  // the same again, of the step before: applied already
    kConflict,   // same rank and step, other bytes or samples
    kFenced,     // from an incarnation that has been replaced
    kTooOld,     // before the last committed step
    kTooNew,     // beyond the open step
  };

  explicit GradientAggregator(int num_workers);

  // Only kAdded changes what is held; an accepted repetition from a newer
  // incarnation raises the fence. rank must be below num_workers.
  Verdict Add(Contribution contribution);

  int64_t step() const { return step_; }  // the open one, from 0
  const VectorClock& contributed() const { return clock_; }
  std::vector<int> MissingRanks() const;

  // By rank; those that have not come have no samples.
  const std::vector<Contribution>& contributions() const { return open_; }

  // Each rank's samples over the sum of all, in rank order; all 0 when nobody
  // had a sample.
  std::vector<float> Weights() const;

  // Closes the step: lets the payloads go, remembers the identities.
  void Commit();

 private:
  const int num_workers_;
  int64_t step_ = 0;
  VectorClock clock_;
  std::vector<bool> received_;
  std::vector<Contribution> open_;
  std::vector<Contribution> committed_;  // the step before, without payloads
  std::vector<uint64_t> fence_;          // the newest incarnation of each rank
};

}  // namespace tributary
