// SPDX-License-Identifier: Apache-2.0
#include "worker/predict/inputs/array_file.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/readers/idx_reader.h"

namespace tributary {
namespace {

// A file with 2^31 extents is refused before; this keeps products in range.
constexpr int kMaxDimensions = 4;

template <typename T>
void Widen(const std::vector<char>& raw, std::vector<double>* numbers) {
  const size_t count = raw.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, raw.data() + i * sizeof(T), sizeof(T));
    numbers->push_back(static_cast<double>(value));
  }
}

}  // namespace

ArrayFile::ArrayFile(std::unique_ptr<InputFile> file, NpyType type, Shape shape)
    : file_(std::move(file)),
      type_(type),
      shape_(std::move(shape)),
      row_shape_(shape_.begin() + 1, shape_.end()) {
  if (row_shape_.empty()) row_shape_ = {1};
}

absl::StatusOr<ArrayFile> ArrayFile::Open(const std::string& path) {
  uint8_t magic[4] = {};
  {
    TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> probe,
                               InputFile::Open(path));
    TRIBUTARY_RETURN_IF_ERROR(probe->ReadExactly(4, magic, "IDX or NPY magic"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file,
                             InputFile::Open(path));
  if (magic[0] == 0x93) {
    TRIBUTARY_ASSIGN_OR_RETURN(NpyHeader header, ReadNpyHeader(file.get()));
    return ArrayFile(std::move(file), header.type, std::move(header.shape));
  }
  if (magic[0] == 0 && magic[1] == 0) {
    TRIBUTARY_ASSIGN_OR_RETURN(Shape shape,
                               ReadIdxHeader(file.get(), 1, kMaxDimensions));
    TRIBUTARY_RETURN_IF_ERROR(
        file->ExpectBacked(NumElements(shape), "IDX data"));
    return ArrayFile(std::move(file), NpyType::kUint8, std::move(shape));
  }
  return file->Error(
      "wanted an IDX or NPY file, but it begins like neither of them");
}

absl::Status ArrayFile::SkipRows(int64_t rows) {
  row_ += rows;
  return file_->Skip(rows * row_size() * NpyTypeSize(type_), "data");
}

absl::Status ArrayFile::ReadBytes(int64_t rows, std::vector<uint8_t>* bytes) {
  bytes->resize(rows * row_size());
  row_ += rows;
  return file_->ReadExactly(bytes->size(), bytes->data(), "data");
}

absl::Status ArrayFile::ReadNumbers(int64_t rows,
                                    std::vector<double>* numbers) {
  raw_.resize(rows * row_size() * NpyTypeSize(type_));
  row_ += rows;
  TRIBUTARY_RETURN_IF_ERROR(
      file_->ReadExactly(raw_.size(), raw_.data(), "data"));
  numbers->clear();
  VisitNpyType(type_,
               [&](auto value) { Widen<decltype(value)>(raw_, numbers); });
  return absl::OkStatus();
}

absl::Status ArrayFile::CheckEnd() {
  return row_ == rows() ? file_->ExpectEnd() : absl::OkStatus();
}

}  // namespace tributary
