// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/train/data/open_data.h"

namespace tributary {

// The data of one job, shared by all ranks of a process. The first rank that
// needs it reads it, while the others wait.
class SharedData {
 public:
  // Opens the data as OpenData does. After a failure the next caller tries
  // again.
  absl::StatusOr<std::shared_ptr<const TrainTest>> Open(
      const v1::DataSpec& spec, TargetKind kind);

 private:
  absl::Mutex mu_;
  std::shared_ptr<const TrainTest> data_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
