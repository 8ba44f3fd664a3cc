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
  int64_t base_version = 0;  // of the weights it is the gradient of
  Payload payload;
};

// Holds the contributions to a block's open step until they are committed: of
// every rank where steps are gathered, of one rank where each contribution is
// committed as it comes. Every contribution may come any number of times and
// counts once. A plain object: ParameterShard's block lock guards it.
class GradientAggregator {
 public:
  struct Options {
    int num_workers = 1;
    bool gathers = true;      // SyncPolicy::gathers()
    bool drops_late = false;  // SyncPolicy::drops_late()
    // [rank]: whether it contributes to the block; empty: all do. Who does not
    // counts as having come, without samples. Gathered steps only.
    std::vector<bool> members = {};
  };
  enum class Verdict {
    kAdded,      // new
    kHeld,       // the same again, its step still open
    kCommitted,  // the same again, applied already
    kLate,       // its step was applied without it: dropped
    kConflict,   // same rank and step, other bytes or samples
    kFenced,     // from an incarnation that has been replaced
    kTooOld,     // before the rank's last committed step
    kTooNew,     // beyond the step that is wanted of the rank
  };

  explicit GradientAggregator(const Options& options);

  bool IsMember(int rank) const {
    return options_.members.empty() || options_.members[rank];
  }

  // Forgets everything: everybody has finished `steps` steps.
  void StartAt(int64_t steps);

  // Only kAdded changes what is held; an accepted repetition from a newer
  // incarnation raises the fence. rank must be below num_workers, and a member.
  Verdict Add(Contribution contribution);

  // From here on the rank's incarnations before this one are fenced. False:
  // this one is.
  //
  // `recomputes`: this incarnation computes other bits than those before it, on
  // another kind of device, say. What they gave to the open step is dropped, so
  // that it comes again. Of a step that is being applied or was, the earlier
  // bits count, and this incarnation's are answered without being compared.
  bool Fence(int rank, uint64_t incarnation, bool recomputes = false);

  // The step that is wanted of a rank, from 0.
  int64_t wanted_step(int rank) const { return applied_.steps(rank); }
  // Whose contributions have come, and whose are in the weights. In a gathered
  // step that is applied without a rank the rank counts as applied.
  const VectorClock& contributed() const { return contributed_; }
  const VectorClock& applied() const { return applied_; }
  // Gathered: whose contribution to the open step has not come. Else those who
  // are behind the foremost.
  std::vector<int> MissingRanks() const;

  // By rank; those that have not come have no samples.
  const std::vector<Contribution>& contributions() const { return open_; }
  uint64_t held_bytes() const;

  // Each rank's samples over the sum of all, in rank order; all 0 when nobody
  // had a sample.
  std::vector<float> Weights() const;

  // Whether anybody had one.
  bool has_samples() const;

  // Takes no further rank's contribution to the open step: it is being applied.
  void Close() { closed_ = true; }
  // Ends what is held: lets the payloads go, remembers the identities.
  void Commit();

 private:
  void OpenStep();
  Verdict Repeated(const Contribution& contribution, const Contribution& held,
                   Verdict same);

  const Options options_;
  VectorClock contributed_;
  VectorClock applied_;
  bool closed_ = false;
  std::vector<bool> received_;
  std::vector<Contribution> open_;
  std::vector<Contribution> committed_;  // each rank's last, without payload
  std::vector<uint64_t> fence_;          // the newest incarnation of each rank
  // By rank: contributions of this incarnation and later ones may differ from
  // those of earlier ones. 0: none may.
  std::vector<uint64_t> recomputes_since_;
};

}  // namespace tributary
