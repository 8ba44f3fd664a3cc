// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/sequential_file.h"

#include "common/status/status_macros.h"

namespace tributary {

absl::Status SequentialFile::Read(int64_t offset, size_t size,
                                  void* out) const {
  absl::MutexLock lock(&mu_);
  if (file_ == nullptr || offset < file_->offset()) {
    TRIBUTARY_ASSIGN_OR_RETURN(file_, files_.Open(0));
  }
  TRIBUTARY_RETURN_IF_ERROR(file_->Skip(offset - file_->offset(), "rows"));
  TRIBUTARY_RETURN_IF_ERROR(file_->ReadExactly(size, out, "rows"));
  if (file_->offset() < end_) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(file_->ExpectEnd());
  file_.reset();
  return absl::OkStatus();
}

}  // namespace tributary
