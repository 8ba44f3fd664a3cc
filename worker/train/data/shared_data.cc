// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/shared_data.h"

#include <utility>

#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<std::shared_ptr<const TrainTest>> SharedData::Open(
    const v1::DataSpec& spec, TargetKind kind) {
  absl::MutexLock lock(&mu_);
  if (data_ == nullptr) {
    TRIBUTARY_ASSIGN_OR_RETURN(TrainTest data, OpenData(spec, kind));
    data_ = std::make_shared<const TrainTest>(std::move(data));
  }
  return data_;
}

}  // namespace tributary
