// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/train/data/readers/input_files.h"
#include "worker/train/data/stream/random_access_file.h"

namespace tributary {

// A plain or packed file that is read front to back: going back to an earlier
// place means reading again from the beginning. The file is open only from its
// first read until its last byte has been read.
class SequentialFile final : public RandomAccessFile {
 public:
  // `file` has one file. Its data end at `end`; more data is an error.
  SequentialFile(InputFiles file, int64_t end)
      : RandomAccessFile(file.name()), files_(std::move(file)), end_(end) {}

  // `offset` is a place in the decompressed data. Errors as of InputFile.
  absl::Status Read(int64_t offset, size_t size, void* out) const override;

 private:
  const InputFiles files_;
  const int64_t end_;
  mutable absl::Mutex mu_;
  mutable std::unique_ptr<InputFile> file_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
