#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace tributary {

// Runs other ranks beside this process's own, of lost workers or because all of
// the job's are threads of one process, each as a worker of its own on a
// thread, so that each computes what it always would have.
class Adoptions {
 public:
  // A rank's whole life; the status is its last sentence.
  using Work = std::function<absl::Status(uint32_t rank)>;

  explicit Adoptions(Work work) : work_(std::move(work)) {}
  ~Adoptions() { Join(); }

  // Ranks that run already go on undisturbed.
  void Adopt(const std::vector<uint32_t>& ranks);
  // Waits until their jobs have ended, each by itself as this process's own.
  void Join();

 private:
  struct Adopted {
    std::thread thread;
    bool ended = false;  // it takes no lock any more
  };

  void Run(uint32_t rank);

  const Work work_;
  absl::Mutex mu_;
  std::map<uint32_t, Adopted> adopted_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
