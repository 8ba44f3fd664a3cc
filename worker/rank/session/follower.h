// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/parameter_spec.h"
#include "common/member/coordinator_client.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/client/parameter_client.h"

namespace tributary {

// Reads the weights of a running job from its servers without a place in the
// job, for example to evaluate them while training goes on. The job does not
// wait for it. For one thread at a time, except Cancel.
class Follower {
 public:
  struct Options {
    std::string coordinator;  // host:port
    // How long Connect waits for the job to begin, and a read for its servers.
    absl::Duration timeout = absl::Seconds(60);
    CallerProof proof;  // of this process
  };
  struct Weights {
    // The fewest and the most updates that a block contains. They are equal
    // unless the job applies contributions one by one (async, ssp) or its
    // weights change faster than they can be read.
    int64_t oldest_version = 0;
    int64_t newest_version = 0;
    std::vector<std::vector<float>> tensors;  // of each parameter, in C order
  };

  // Waits until the job has begun. Unavailable: no coordinator answers.
  // DeadlineExceeded: the job waits; the message says for what. OutOfRange: it
  // has ended.
  static absl::StatusOr<std::unique_ptr<Follower>> Connect(Options options);
  ~Follower();

  const ParameterSpecs& parameters() const;

  // Returns the weights once each block has at least `min_version` updates, all
  // with the same number where that is possible. After a rollback the versions
  // are lower than before, and a read waits until they have risen again.
  // OutOfRange: the job has ended; the message says how. Other errors name the
  // server that did not give such weights in time, and what it waits for.
  absl::StatusOr<Weights> Read(int64_t min_version);

  // Ends the present read with Cancelled. From any thread.
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  explicit Follower(Options options) : options_(std::move(options)) {}

  // Runs on the thread: learns of new plans and of the job's end, and cancels
  // the current read when one of them comes.
  void Watch() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Use(v1::Plan plan) ABSL_LOCKS_EXCLUDED(mu_);
  // Uses the plan that the thread has learned of. An error ends reading.
  absl::Status TakeNews() ABSL_LOCKS_EXCLUDED(mu_);
  // Reads once from the servers of the present plan.
  absl::StatusOr<Weights> TryRead(int64_t min_version);
  absl::Status Pull(const WantedWeights& wanted, Weights* weights);

  Options options_;
  std::unique_ptr<CoordinatorClient> coordinator_;
  std::unique_ptr<ParameterClient> client_;  // changed under mu_
  absl::Mutex mu_;
  uint64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;            // of the newest plan
  std::optional<v1::Plan> next_ ABSL_GUARDED_BY(mu_);  // not in use yet
  absl::Status end_ ABSL_GUARDED_BY(mu_);
  std::thread watch_;
};

}  // namespace tributary
