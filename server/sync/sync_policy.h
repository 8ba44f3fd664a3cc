// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "common/base/mutation.h"
#include "server/sync/vector_clock.h"

namespace tributary {

// Decides when contributions are applied and when weights may be read. A pure
// function of its arguments: it takes no lock and never waits, so a test needs
// no timing. docs/consistency.md states each policy's guarantee.
class SyncPolicy {
 public:
  virtual ~SyncPolicy() = default;

  // True: a step's contributions are gathered, averaged and applied together.
  // False: each contribution is applied on its own, as it comes.
  virtual bool gathers() const = 0;
  // True: a contribution that comes after its step was applied is dropped.
  virtual bool drops_late() const { return false; }

  // True when gathered step `step` (from 0) may be applied. `clock` counts the
  // settled steps of each worker.
  virtual bool MayApply(const VectorClock& clock, int64_t step) const = 0;

  // Upper bound of the steps by which a worker that reads may be ahead of the
  // slowest worker; nullopt: unbounded.
  virtual std::optional<int64_t> staleness_bound() const = 0;

  // True when a worker that has finished `finished` steps may read weights that
  // contain the contributions in `clock`.
  virtual bool MayPull(const VectorClock& clock, int64_t finished) const = 0;
};

// Bulk synchronous parallel (Valiant 1990): a step is applied once every worker
// has contributed to it, and no worker reads its weights before. With backup
// workers (Chen et al. 2016) a step is applied once all workers except
// `backup_workers` have contributed, and later contributions are dropped.
class BulkSynchronous final : public SyncPolicy {
 public:
  explicit BulkSynchronous(int backup_workers = 0)
      : backup_workers_(backup_workers) {}

  bool gathers() const override { return true; }
  bool drops_late() const override { return backup_workers_ > 0; }
  std::optional<int64_t> staleness_bound() const override { return 0; }
  bool MayApply(const VectorClock& clock, int64_t step) const override {
    return clock.Past(step) >= clock.num_workers() - backup_workers_;
  }
  // Applying a step settles it for every worker.
  bool MayPull(const VectorClock& clock, int64_t finished) const override {
    return clock.Min() >= finished;
  }

 private:
  const int backup_workers_;
};

// True when all workers meet after `finished` steps: none reads weights before
// all have contributed, which makes a consistent snapshot. Null: they never do.
using Barrier = std::function<bool(int64_t finished)>;

// Stale synchronous parallel (Ho et al., NIPS 2013): the fastest worker stays
// within `staleness` steps of the slowest, so weights lack at most the
// contributions of the last `staleness` steps.
class StaleSynchronous final : public SyncPolicy {
 public:
  explicit StaleSynchronous(int64_t staleness, Barrier barrier = nullptr)
      : staleness_(staleness), barrier_(std::move(barrier)) {}

  bool gathers() const override { return false; }
  std::optional<int64_t> staleness_bound() const override { return staleness_; }
  bool MayApply(const VectorClock&, int64_t) const override { return true; }
  bool MayPull(const VectorClock& clock, int64_t finished) const override {
    const bool barrier = barrier_ && barrier_(finished);
    const int64_t bound =
        staleness_ + (TRIBUTARY_MUTATED("staleness-plus-one") ? 1 : 0);
    return clock.Min() >= finished - (barrier ? 0 : bound);
  }

 private:
  const int64_t staleness_;
  const Barrier barrier_;
};

// Workers wait for each other only at the barriers.
class Asynchronous final : public SyncPolicy {
 public:
  explicit Asynchronous(Barrier barrier = nullptr)
      : barrier_(std::move(barrier)) {}

  bool gathers() const override { return false; }
  std::optional<int64_t> staleness_bound() const override {
    return std::nullopt;
  }
  bool MayApply(const VectorClock&, int64_t) const override { return true; }
  bool MayPull(const VectorClock& clock, int64_t finished) const override {
    return !barrier_ || !barrier_(finished) || clock.Min() >= finished;
  }

 private:
  const Barrier barrier_;
};

}  // namespace tributary
