// SPDX-License-Identifier: Apache-2.0
#include "common/wire/tensor_frame.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// The wire types of protobuf's encoding.
enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Reads through the bytes of a list of slices.
class SliceCursor {
 public:
  explicit SliceCursor(const std::vector<grpc::Slice>& slices)
      : slices_(slices) {
    for (const grpc::Slice& slice : slices_) left_ += slice.size();
  }

  size_t left() const { return left_; }
  size_t offset() const { return offset_; }

  absl::Status ReadVarint(uint64_t* value, std::string* copy,
                          int max_bytes = 10) {
    *value = 0;
    for (int shift = 0; shift < 7 * max_bytes; shift += 7) {
      if (left_ == 0) return Truncated();
      const uint8_t byte = *Here();
      Advance(1);
      if (copy) copy->push_back(static_cast<char>(byte));
      *value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("malformed message: varint too long at byte ", offset_));
  }

  // Reads a tag or a length. Refuses more than 5 bytes or 32 bits: protobuf
  // would drop the upper bits and read another field.
  absl::Status ReadVarint32(uint64_t* value, std::string* copy) {
    TRIBUTARY_RETURN_IF_ERROR(ReadVarint(value, copy, /*max_bytes=*/5));
    if (*value <= UINT32_MAX) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "malformed message: tag or length ", *value, " before byte ", offset_,
        ", wanted at most ", UINT32_MAX));
  }

  // Calls visit(pointer, bytes) for each piece of the next n bytes.
  template <typename Visit>
  absl::Status Take(uint64_t n, Visit visit) {
    if (n > left_) return Truncated();
    while (n > 0) {
      const size_t piece = static_cast<size_t>(
          std::min<uint64_t>(n, slices_[slice_].size() - at_));
      if (piece > 0) visit(Here(), piece);
      Advance(piece);
      n -= piece;
    }
    return absl::OkStatus();
  }

 private:
  const uint8_t* Here() {
    while (at_ == slices_[slice_].size()) {
      ++slice_;
      at_ = 0;
    }
    return slices_[slice_].begin() + at_;
  }
  void Advance(size_t n) {
    at_ += n;
    offset_ += n;
    left_ -= n;
    while (left_ > 0 && at_ == slices_[slice_].size()) {
      ++slice_;
      at_ = 0;
    }
  }
  absl::Status Truncated() const {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed message: cut short at byte ", offset_));
  }

  const std::vector<grpc::Slice>& slices_;
  size_t slice_ = 0;
  size_t at_ = 0;
  size_t offset_ = 0;
  size_t left_ = 0;
};

// Copies one field other than the payload to the header's bytes.
absl::Status CopyField(SliceCursor& cursor, uint64_t tag, std::string* header) {
  const auto append = [header](const uint8_t* data, size_t n) {
    header->append(reinterpret_cast<const char*>(data), n);
  };
  uint64_t value = 0;
  switch (tag & 7) {
    case kVarint:
      return cursor.ReadVarint(&value, header);
    case kFixed64:
      return cursor.Take(8, append);
    case kFixed32:
      return cursor.Take(4, append);
    case kBytes:
      TRIBUTARY_RETURN_IF_ERROR(cursor.ReadVarint32(&value, header));
      if (value > kMaxHeaderBytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("field ", tag >> 3, " has ", value,
                         " bytes; a header has at most ", kMaxHeaderBytes));
      }
      return cursor.Take(value, append);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("malformed message: wire type ", tag & 7, " at byte ",
                       cursor.offset()));
  }
}

}  // namespace

grpc::ByteBuffer EncodeFrame(const google::protobuf::MessageLite& header,
                             std::vector<grpc::Slice> payload) {
  using google::protobuf::io::CodedOutputStream;
  size_t payload_bytes = 0;
  for (const grpc::Slice& slice : payload) payload_bytes += slice.size();

  std::string head = header.SerializeAsString();
  if (payload_bytes > 0) {
    uint8_t prefix[16];
    uint8_t* end =
        CodedOutputStream::WriteTagToArray(kPayloadField << 3 | kBytes, prefix);
    end = CodedOutputStream::WriteVarint64ToArray(payload_bytes, end);
    head.append(reinterpret_cast<const char*>(prefix), end - prefix);
  }
  payload.insert(payload.begin(), grpc::Slice(head.data(), head.size()));
  return grpc::ByteBuffer(payload.data(), payload.size());
}

absl::Status DecodeFrame(const grpc::ByteBuffer& buffer,
                         google::protobuf::MessageLite* header,
                         Payload* payload) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(slices.get()).ok()) {
    return absl::InvalidArgumentError("malformed message: unreadable buffer");
  }
  SliceCursor cursor(*slices);
  std::string header_bytes;
  std::vector<Payload::Piece> pieces;
  while (cursor.left() > 0) {
    const size_t tag_at = header_bytes.size();
    uint64_t tag = 0;
    TRIBUTARY_RETURN_IF_ERROR(cursor.ReadVarint32(&tag, &header_bytes));
    if (tag == (kPayloadField << 3 | kBytes)) {
      header_bytes.resize(tag_at);
      uint64_t length = 0;
      TRIBUTARY_RETURN_IF_ERROR(cursor.ReadVarint32(&length, nullptr));
      pieces.clear();
      TRIBUTARY_RETURN_IF_ERROR(
          cursor.Take(length, [&](const uint8_t* data, size_t n) {
            pieces.emplace_back(reinterpret_cast<const char*>(data), n);
          }));
    } else {
      TRIBUTARY_RETURN_IF_ERROR(CopyField(cursor, tag, &header_bytes));
    }
    if (header_bytes.size() > kMaxHeaderBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "header is over its limit of ", kMaxHeaderBytes, " bytes"));
    }
  }
  if (!header->ParseFromString(header_bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed message: header of ", header_bytes.size(),
                     " bytes is no ", header->GetTypeName()));
  }
  *payload = Payload(std::move(pieces), std::move(slices));
  return absl::OkStatus();
}

grpc::Slice OwnedSlice(const void* data, size_t n,
                       std::shared_ptr<const void> owner) {
  using Owner = std::shared_ptr<const void>;
  // gRPC changes no byte of a message that it sends.
  return grpc::Slice(
      const_cast<void*>(data), n,
      [](void* user) { delete static_cast<Owner*>(user); },
      new Owner(std::move(owner)));
}

grpc::Slice SharedSlice(SharedBuffer buffer, size_t n) {
  float* data = buffer.data();
  auto* reference = new SharedBuffer(std::move(buffer));
  return grpc::Slice(
      data, n, [](void* user) { delete static_cast<SharedBuffer*>(user); },
      reference);
}

}  // namespace tributary
