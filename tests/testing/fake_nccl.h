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

// What the ranks of a machine without devices share: NCCL as NcclApi describes
// it, over threads and host memory. A call of a communicator is done when every
// rank has made it; until then, and after a rank has left, it never ends by
// itself, as NCCL's do not.
class FakeNccl {
 public:
  // How a rank's NCCL behaves.
  struct Behaviour {
    // So often State says that a call is in progress before it is enqueued.
    int settles_after = 2;
    bool fails_to_connect = false;
    bool never_connects = false;
  };
  // A rank's functions; `device_id` is its device's.
  std::unique_ptr<NcclApi> Open(std::string device_id, Behaviour behaviour);
  std::unique_ptr<NcclApi> Open(std::string device_id) {
    return Open(std::move(device_id), Behaviour());
  }

  // From now on State finds this error on every communicator.
  void FailAsync(const std::string& why);
  // Of all ranks, so far.
  int opened() const;
  int aborted() const;
  int closed() const;
  int live_streams() const;
  int live_events() const;

 private:
  friend class FakeRank;
  struct Part {  // of one rank's call
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
    int root;  // or peer
  };
  using Call = std::vector<Part>;
  struct Group {
    int size = 0;
    std::vector<std::vector<Call>> calls;  // [rank][number]
    size_t done = 0;
    bool broken = false;  // a rank has aborted: nothing is done any more
    std::vector<bool> joined, finalized;
  };
  struct Side {  // a communicator
    std::shared_ptr<Group> group;
    int rank = 0;
    int unsettled = 0;
    Call open;  // the group of calls that is being made
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
