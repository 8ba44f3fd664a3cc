// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/job/job_core.h"

namespace tributary {

// The coordinator's core objects and the one lock that guards them.
//
// State is written ahead: every change is saved before it is answered, shown or
// acted upon. While saving fails, heartbeats are answered with the previous
// state and every other call with Unavailable, and each Tick retries. After
// the loss timeout the job fails. Evaluations and the newest checkpoint are
// saved too, but the job does not wait for them. The state is saved under the
// lock, because states have to reach the disk in the order of the changes.
struct LockedJob {
  explicit LockedJob(JobCore::Options options)
      : clock(options.clock), core(std::move(options)) {}

  // Holds the lock for a change. Commit, or else the destructor, saves the
  // change and then publishes it, so that no change can be seen before it is
  // saved.
  class ABSL_SCOPED_LOCKABLE Change {
   public:
    explicit Change(LockedJob* job) ABSL_EXCLUSIVE_LOCK_FUNCTION(job->mu)
        : job_(*job) {
      job_.mu.Lock();
    }
    ~Change() ABSL_UNLOCK_FUNCTION() {
      (void)Commit();
      job_.mu.Unlock();
    }
    // Why the change must not be seen yet; OK: it may be seen.
    absl::Status Commit() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (!committed_) job_.core.Commit();
      committed_ = true;
      return job_.core.Held();
    }

   private:
    LockedJob& job_;
    bool committed_ = false;
  };

  const Clock* const clock;
  mutable absl::Mutex mu;
  JobCore core ABSL_GUARDED_BY(mu);
  bool closed ABSL_GUARDED_BY(mu) = false;  // every wait ends
};

}  // namespace tributary
