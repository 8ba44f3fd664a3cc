#pragma once

#include <cstdint>

#include "server/sync/vector_clock.h"

namespace tributary {

// Decides when a step's contributions may be applied and when weights may be
// read. A pure function of its arguments: it takes no lock and never waits, so
// a test needs no timing.
class SyncPolicy {
 public:
  virtual ~SyncPolicy() = default;

  // True when step `step` (from 0) may be applied, given who has contributed
  // how many steps.
  virtual bool MayApply(const VectorClock& contributed, int64_t step) const = 0;

  // True when a worker that has finished `finished` steps may read weights to
  // which `version` steps have been applied.
  virtual bool MayPull(int64_t version, int64_t finished) const = 0;
};

// Bulk synchronous parallel (Valiant 1990): a step is applied once every
// worker has contributed to it, and read by nobody before.
class BulkSynchronous final : public SyncPolicy {
 public:
  bool MayApply(const VectorClock& contributed, int64_t step) const override {
    return contributed.Min() > step;
  }
  bool MayPull(int64_t version, int64_t finished) const override {
    return version >= finished;
  }
};

}  // namespace tributary
