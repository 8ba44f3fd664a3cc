// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/rank/collective/mesh.h"

namespace tributary {

// Detects that a rank of a group is gone, for backends that cannot, such as
// NCCL between the devices of one machine. On each rank a thread waits for a
// message from the next rank, or for that connection to break, and sends the
// lost rank's number to the previous rank; so all ranks know it after one trip
// around the ring. For one thread, except lost().
class GroupWatch {
 public:
  // ranks: the job's numbers of the ranks; empty: 0, 1, and so on.
  GroupWatch(std::unique_ptr<Mesh> mesh, std::vector<int> ranks);
  // Passes on a known loss, then disconnects: this rank is gone for the others.
  ~GroupWatch();

  int rank() const { return mesh_->rank(); }
  int size() const { return mesh_->size(); }

  // OK, or Unavailable with the lost rank. May be called from any thread.
  absl::Status lost() const;
  // The same, but waits up to `timeout` for a loss.
  absl::Status AwaitLost(absl::Duration timeout) const;

  // Called when this rank's call timed out. Other ranks that timed out answer
  // within `timeout`. Returns the job's numbers of the ranks that did not
  // answer, and reports the first of them as lost to the group. Call it at most
  // once.
  std::vector<int> FindSilent(absl::Duration timeout);
  // True when all ranks have called this within `timeout`. Call it at most
  // once.
  bool Leave(absl::Duration timeout);

 private:
  void Listen();  // runs on thread_
  void Lose(int rank, const std::string& how);
  // The ranks of the group that do not send `tag` within `timeout`.
  std::vector<int> Absent(uint64_t tag, absl::Duration timeout);

  const std::unique_ptr<Mesh> mesh_;
  const std::vector<int> ranks_;
  int32_t word_ = -1;  // message of the next rank: the lost rank
  std::unique_ptr<Mesh::Operation> listening_;

  mutable absl::Mutex mu_;
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;
  bool telling_ ABSL_GUARDED_BY(mu_) = false;  // a loss is being passed on

  std::thread thread_;
};

}  // namespace tributary
