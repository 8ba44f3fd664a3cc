// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/tensor.h"
#include "worker/data/readers/input_file.h"
#include "worker/data/readers/npy_header.h"

namespace tributary {

// A file of numbers in rows, IDX or NPY, gzip or plain, read front to back.
class ArrayFile {
 public:
  // InvalidArgument for another format; the first bytes tell them apart.
  static absl::StatusOr<ArrayFile> Open(const std::string& path);

  const std::string& name() const { return file_->name(); }
  bool holds_bytes() const { return type_ == NpyType::kUint8; }
  int64_t rows() const { return shape_[0]; }
  // The shape of one row; {1} of a list of numbers.
  const Shape& row_shape() const { return row_shape_; }
  int64_t row_size() const { return NumElements(row_shape_); }
  // The number of the next row.
  int64_t row() const { return row_; }

  absl::Status SkipRows(int64_t rows);
  // Reads the next rows, of which there must be enough; only of bytes.
  absl::Status ReadBytes(int64_t rows, std::vector<uint8_t>* bytes);
  // The same as numbers, of any type.
  absl::Status ReadNumbers(int64_t rows, std::vector<double>* numbers);
  // An error when more data follow the last row.
  absl::Status CheckEnd();

 private:
  ArrayFile(std::unique_ptr<InputFile> file, NpyType type, Shape shape);

  std::unique_ptr<InputFile> file_;
  NpyType type_;
  Shape shape_;
  Shape row_shape_;
  int64_t row_ = 0;
  std::vector<char> raw_;
};

}  // namespace tributary
