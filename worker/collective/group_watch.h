#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/collective/mesh.h"

namespace tributary {

// Knows when a rank of a group is gone, for what moves arrays and does not say
// so, as NCCL between the devices of one machine. A thread of each rank waits
// for word from the next rank, or for its connection to break, and passes on to
// the one before who is lost; so all know within one round. For one thread, but
// for lost().
class GroupWatch {
 public:
  // ranks: what the job calls them; empty: 0, 1, and so on.
  GroupWatch(std::unique_ptr<Mesh> mesh, std::vector<int> ranks);
  // Gone for the others, whatever they do; who is lost is passed on before.
  ~GroupWatch();

  int rank() const { return mesh_->rank(); }
  int size() const { return mesh_->size(); }

  // OK, or Unavailable that names who is gone. From any thread.
  absl::Status lost() const;
  // The same, once there is something to tell, at most after `timeout`.
  absl::Status AwaitLost(absl::Duration timeout) const;

  // This rank has waited in vain. Those who have, too, answer within `timeout`;
  // returns the job's names of the others, and tells all of the first. Once.
  std::vector<int> FindSilent(absl::Duration timeout);
  // Whether all ranks have come to their end within `timeout`. Once.
  bool Leave(absl::Duration timeout);

  int JobRank(int rank) const { return ranks_.empty() ? rank : ranks_[rank]; }

 private:
  void Listen();  // the thread
  void Lose(int rank, const std::string& how);
  // The ranks of the group that do not come to this within `timeout`.
  std::vector<int> Absent(uint64_t tag, absl::Duration timeout);

  const std::unique_ptr<Mesh> mesh_;
  const std::vector<int> ranks_;
  int32_t word_ = -1;  // what the next rank says: who is lost
  std::unique_ptr<Mesh::Operation> listening_;

  mutable absl::Mutex mu_;
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;
  bool telling_ ABSL_GUARDED_BY(mu_) = false;  // who is lost

  std::thread thread_;
};

}  // namespace tributary
