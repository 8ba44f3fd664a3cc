// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/stored_records.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Records with at most so many bytes between them are read at once: reading the
// bytes between them costs less than another call.
constexpr int64_t kMostGap = 32 << 10;
constexpr int64_t kMostRead = 1 << 20;

}  // namespace

void StoredRecords::Append(std::shared_ptr<const RandomAccessFile> file,
                           NpyType type, int64_t offset, int64_t count,
                           int64_t first) {
  const int64_t begin = this->count();
  parts_.push_back(
      {std::move(file), type, offset, begin, begin + count, first});
}

bool StoredRecords::holds_bytes() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.type == NpyType::kUint8 || part.type == NpyType::kBool;
  });
}

bool StoredRecords::holds_booleans() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.type == NpyType::kBool;
  });
}

const StoredRecords::Part& StoredRecords::PartOf(int64_t record) const {
  TRIBUTARY_CHECK(record >= 0 && record < count());
  return *std::upper_bound(
      parts_.begin(), parts_.end(), record,
      [](int64_t number, const Part& part) { return number < part.end; });
}

std::string StoredRecords::Place(int64_t record) const {
  const Part& part = PartOf(record);
  return absl::StrCat(part.file->name(), ": row ",
                      part.first + record - part.begin);
}

std::string StoredRecords::Places(int64_t first, int64_t last) const {
  const Part& part = PartOf(first);
  if (last >= part.end) return absl::StrCat(Place(first), " to ", Place(last));
  return absl::StrCat(part.file->name(), ": rows ",
                      part.first + first - part.begin, " to ",
                      part.first + last - part.begin);
}

absl::StatusOr<std::vector<RandomAccessFile::Stamp>> StoredRecords::ReadStamps()
    const {
  std::vector<RandomAccessFile::Stamp> stamps;
  for (const Part& part : parts_) {
    TRIBUTARY_ASSIGN_OR_RETURN(stamps.emplace_back(), part.file->ReadStamp());
  }
  return stamps;
}

absl::Status StoredRecords::ReadGroup(const Part& part,
                                      absl::Span<const int64_t> records,
                                      std::vector<uint8_t>* bytes) const {
  const auto size = static_cast<int64_t>(NpyTypeSize(part.type));
  const int64_t first = records.front();
  const int64_t span = (records.back() - first) * pitch_ + width_;
  bytes->resize(span * size);
  TRIBUTARY_RETURN_IF_ERROR(
      part.file->Read(part.offset + (first - part.begin) * pitch_ * size,
                      bytes->size(), bytes->data()));
  const auto count = static_cast<int64_t>(records.size());
  if (pitch_ == width_ && span == count * width_) return absl::OkStatus();
  std::vector<uint8_t> together(count * width_ * size);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(together.data() + i * width_ * size,
                bytes->data() + (records[i] - first) * pitch_ * size,
                width_ * size);
  }
  bytes->swap(together);
  return absl::OkStatus();
}

absl::Status StoredRecords::Read(absl::Span<const int64_t> records,
                                 const Take& take) const {
  std::vector<uint8_t> bytes;
  for (size_t begin = 0; begin < records.size();) {
    const Part& part = PartOf(records[begin]);
    const auto size = static_cast<int64_t>(NpyTypeSize(part.type));
    size_t end = begin + 1;
    while (end < records.size() && records[end] < part.end) {
      TRIBUTARY_CHECK(records[end] > records[end - 1]);
      const int64_t gap = (records[end] - records[end - 1]) * pitch_ - width_;
      const int64_t span = (records[end] - records[begin]) * pitch_ + width_;
      if (gap * size > kMostGap || span * size > kMostRead) break;
      ++end;
    }
    TRIBUTARY_RETURN_IF_ERROR(
        ReadGroup(part, records.subspan(begin, end - begin), &bytes));
    TRIBUTARY_RETURN_IF_ERROR(take(part.type, bytes));
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace tributary
