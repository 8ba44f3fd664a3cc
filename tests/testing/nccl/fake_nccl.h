// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kernels/nccl_api.h"

namespace tributary::testing {

// NCCL, as NcclApi describes it, over threads and host memory, for the ranks of
// a machine without devices. A collective call completes when every rank has
// made it. Until then, and after a rank has left, it never ends by itself, as
// in NCCL.
class FakeNccl {
 public:
  // The behaviour of a rank's NCCL.
  struct Behaviour {
    // How many times State reports a call as in progress before it is enqueued.
    int settles_after = 2;
    bool fails_to_connect = false;
    bool never_connects = false;
  };
  // A rank's functions; `device_id` identifies its device.
  std::unique_ptr<NcclApi> Open(std::string device_id, Behaviour behaviour);
  std::unique_ptr<NcclApi> Open(std::string device_id) {
    return Open(std::move(device_id), Behaviour());
  }

  // From now on State returns this error for every communicator.
  void FailAsync(const std::string& why);
  // Totals over all ranks so far.
  int opened() const;
  int aborted() const;
  int closed() const;
  int live_streams() const;
  int live_events() const;

 private:
  friend class FakeRank;
  struct Part {  // one rank's part of a call
    enum Kind {
      kAllReduce,
      kReduce,
      kReduceScatter,
      kAllGather,
      kBroadcast,
      kSend,
      kReceive
    };
    Kind kind;
    float* data;
    size_t n;
    int root;  // or the peer
  };
  using Call = std::vector<Part>;
  struct Group {
    int size = 0;
    std::vector<std::vector<Call>> calls;  // [rank][number]
    size_t done = 0;
    bool broken = false;  // a rank has aborted, so no call completes
    std::vector<bool> joined, finalized;
  };
  struct Side {  // one rank's communicator
    std::shared_ptr<Group> group;
    int rank = 0;
    int unsettled = 0;
    Call open;  // the group call being built
    bool never = false;
  };

  void RunDoneLocked(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  uint64_t ids_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<NcclId, std::shared_ptr<Group>> groups_ ABSL_GUARDED_BY(mu_);
  std::string async_error_ ABSL_GUARDED_BY(mu_);
  int opened_ ABSL_GUARDED_BY(mu_) = 0;
  int aborted_ ABSL_GUARDED_BY(mu_) = 0;
  int closed_ ABSL_GUARDED_BY(mu_) = 0;
  int streams_ ABSL_GUARDED_BY(mu_) = 0;
  int events_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tributary::testing
