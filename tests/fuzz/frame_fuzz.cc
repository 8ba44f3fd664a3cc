// SPDX-License-Identifier: Apache-2.0
// Frames of the hot path: DecodeFrame reads the same message as protobuf's
// generated code, however the bytes are cut into slices.
#include <google/protobuf/message.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/wire/crc32c/crc32c.h"
#include "common/wire/tensor_frame.h"
#include "tests/fuzz/fuzz.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary::fuzz {
namespace {

std::unique_ptr<google::protobuf::Message> NewMessage(int kind) {
  switch (kind % 6) {
    case 0:
      return std::make_unique<v1::PushPullRequest>();
    case 1:
      return std::make_unique<v1::PushPullResponse>();
    case 2:
      return std::make_unique<v1::InitializeRequest>();
    case 3:
      return std::make_unique<v1::PullRequest>();
    case 4:
      return std::make_unique<v1::PullResponse>();
    default:
      return std::make_unique<v1::StatisticsRequest>();
  }
}

// Slices of `step` bytes (0: all in one), and empty slices between them.
grpc::ByteBuffer Cut(absl::string_view bytes, size_t step) {
  std::vector<grpc::Slice> slices;
  if (step == 0) step = bytes.size() + 1;
  for (size_t at = 0; at < bytes.size(); at += step) {
    const absl::string_view piece = bytes.substr(at, step);
    slices.emplace_back(piece.data(), piece.size());
    if (slices.size() % 3 == 1) slices.emplace_back();
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Bytes(const Payload& payload) {
  std::string bytes(payload.size(), '\0');
  payload.CopyTo(bytes.data());
  return bytes;
}

// Takes the payload field, where the message has one.
std::string TakePayload(google::protobuf::Message* message) {
  const auto* field =
      message->GetDescriptor()->FindFieldByNumber(kPayloadField);
  if (field == nullptr) return "";
  std::string bytes = message->GetReflection()->GetString(*message, field);
  message->GetReflection()->ClearField(message, field);
  return bytes;
}

void CheckPayload(const Payload& payload) {
  const std::string bytes = Bytes(payload);
  Expect(payload.ScanFloats().crc32c == Crc32c(bytes.data(), bytes.size()),
         "pieces have the checksum of the whole");
  Expect(payload.ScanFloats().first_nonfinite ==
             Payload::Copy(bytes.data(), bytes.size())
                 .ScanFloats()
                 .first_nonfinite,
         "a NaN is found wherever the pieces end");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const std::unique_ptr<google::protobuf::Message> header =
      NewMessage(input.Byte());
  const size_t step = input.Byte();
  const absl::string_view bytes = input.Rest();
  Payload payload;
  const absl::Status status =
      DecodeFrame(Cut(bytes, step), header.get(), &payload);
  if (!status.ok()) {
    Expect(!status.message().empty(), "an error says what came");
    return 0;
  }
  CheckPayload(payload);

  const std::unique_ptr<google::protobuf::Message> oracle(header->New());
  Expect(oracle->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
         "protobuf takes what DecodeFrame takes");
  const bool has_payload =
      header->GetDescriptor()->FindFieldByNumber(kPayloadField) != nullptr;
  const std::string wanted = TakePayload(oracle.get());
  Expect(!has_payload || Bytes(payload) == wanted,
         "the payload is the one that protobuf reads");
  oracle->DiscardUnknownFields();
  header->DiscardUnknownFields();
  Expect(header->SerializeAsString() == oracle->SerializeAsString(),
         "the header is the one that protobuf reads");

  if (!has_payload) return 0;
  const std::unique_ptr<google::protobuf::Message> again(header->New());
  Payload payload_again;
  Expect(DecodeFrame(EncodeFrame(*header, {grpc::Slice(wanted)}), again.get(),
                     &payload_again)
             .ok(),
         "what EncodeFrame writes can be read");
  Expect(again->SerializeAsString() == header->SerializeAsString() &&
             Bytes(payload_again) == wanted,
         "a frame survives writing and reading");
  return 0;
}

}  // namespace tributary::fuzz
