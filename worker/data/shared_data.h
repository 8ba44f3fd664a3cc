#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/data/open_data.h"

namespace tributary {

// The data of one job for all ranks that run in a process: read once, by the
// first that wants it, while the others wait.
class SharedData {
 public:
  // As OpenData. What could not be read the next caller tries to read again.
  absl::StatusOr<std::shared_ptr<const TrainTest>> Open(
      const v1::DataSpec& spec, TargetKind kind);

 private:
  absl::Mutex mu_;
  std::shared_ptr<const TrainTest> data_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
