// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/parameter_spec.h"
#include "common/base/unique_fd.h"
#include "common/files/atomic_file.h"

namespace tributary {

// Tensors in the safetensors format (huggingface.co/docs/safetensors). Values
// are float32 in memory and in the files that are written here; float16 and
// bfloat16 of other files become float32 when they are read. A file consists of
// the header's length (8 bytes, little-endian); the header, a JSON object that
// gives each name its dtype, shape and data_offsets, padded with spaces to a
// multiple of 8; and the tensors in C order, without gaps.

// Writes one file, tensor by tensor, so that the values need not be in memory
// all at once. The file appears, complete, with Commit.
class SafetensorsWriter {
 public:
  // InvalidArgument when two tensors have the same name or a name is not UTF-8.
  static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Create(
      const std::string& path, const ParameterSpecs& specs);

  // Appends the next values, in the order of the specs. A call may end inside a
  // tensor.
  absl::Status Append(absl::Span<const float> values);
  // Completes the file. FailedPrecondition when values are missing.
  absl::Status Commit();

 private:
  SafetensorsWriter(std::unique_ptr<AtomicFile> file, std::string path,
                    uint64_t missing)
      : file_(std::move(file)), path_(std::move(path)), missing_(missing) {}

  const std::unique_ptr<AtomicFile> file_;
  const std::string path_;
  uint64_t missing_;  // values still to come
};

// data[i] holds specs[i].size() values.
absl::Status WriteSafetensors(const std::string& path,
                              const ParameterSpecs& specs,
                              absl::Span<const float* const> data);

// Reads tensors one by one. Open reads and checks only the header. No value is
// read before its offsets are known to be inside the file, without gaps and
// without overlaps. A file may have tensors of any other types, such as the
// counters (I64) of PyTorch's batch norms; only reading these is an error.
class SafetensorsReader {
 public:
  // NotFound, InvalidArgument with the position in the file, or DataLoss if it
  // cannot be read.
  static absl::StatusOr<SafetensorsReader> Open(const std::string& path);

  // In the order of the data.
  const ParameterSpecs& tensors() const { return tensors_; }

  // InvalidArgument unless tensors()[index] is of float32, float16 or bfloat16.
  absl::Status CheckType(size_t index) const;

  // Reads tensors()[index] into `values`. InvalidArgument as CheckType, or for
  // another number of values. DataLoss: the file is shorter now.
  absl::Status Read(size_t index, absl::Span<float> values) const;
  // The same for weights that a job starts from. InvalidArgument, naming the
  // tensor and the element, when a value is not finite.
  absl::Status ReadFinite(size_t index, absl::Span<float> values) const;

 private:
  SafetensorsReader(std::string path, UniqueFd fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
  ParameterSpecs tensors_;
  std::vector<uint64_t> offsets_;    // byte offset of each tensor
  std::vector<std::string> dtypes_;  // of each tensor, as in the header
};

// OK when the file has exactly the tensors of `specs`, by name and shape, in
// any order. Otherwise the error names the first tensor that is missing,
// different or unexpected.
absl::Status MatchTensors(const SafetensorsReader& reader,
                          const ParameterSpecs& specs);

// Reads all tensors in the order of `specs`, which MatchTensors must accept.
absl::StatusOr<std::vector<std::vector<float>>> ReadSafetensors(
    const std::string& path, const ParameterSpecs& specs);

}  // namespace tributary
