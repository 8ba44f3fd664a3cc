// SPDX-License-Identifier: Apache-2.0
#include "common/wire/tensor_frame.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/testing/relay/byte_buffers.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {
namespace {

v1::PushPullRequest MakeRequest() {
  v1::PushPullRequest request;
  request.mutable_address()->set_job_id(1);
  request.mutable_address()->set_block(3);
  request.set_rank(2);
  request.set_step(300);
  request.set_crc32c(0xdeadbeef);
  return request;
}

std::string Text(const Payload& payload) {
  std::string text(payload.size(), '\0');
  payload.CopyTo(text.data());
  return text;
}

// Cuts bytes into slices of `piece` bytes, as a network might.
grpc::ByteBuffer Cut(const std::string& bytes, size_t piece) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    slices.emplace_back(bytes.substr(at, piece));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

TEST(TensorFrameTest, WritesExactlyWhatProtobufWrites) {
  const auto owner =
      std::make_shared<const std::string>("tensor bytes in two pieces");
  const std::string& tensor = *owner;
  v1::PushPullRequest whole = MakeRequest();
  whole.set_payload(tensor);
  const grpc::ByteBuffer frame =
      EncodeFrame(MakeRequest(),
                  {OwnedSlice(tensor.data(), 10, owner),
                   OwnedSlice(tensor.data() + 10, tensor.size() - 10, owner)});
  EXPECT_EQ(testing::BytesOf(frame), whole.SerializeAsString());
}

TEST(TensorFrameTest, BytesLiveAsLongAsASliceOfThem) {
  auto owner = std::make_shared<const std::string>(1 << 10, 'x');
  const std::weak_ptr<const std::string> living = owner;
  const char* const data = owner->data();
  grpc::ByteBuffer frame =
      EncodeFrame(MakeRequest(), {OwnedSlice(data, 1 << 10, std::move(owner))});
  EXPECT_FALSE(living.expired());
  frame.Clear();
  EXPECT_TRUE(living.expired());
}

TEST(TensorFrameTest, ReadsWhatProtobufWritesHoweverItIsCut) {
  v1::PushPullRequest sent = MakeRequest();
  sent.set_payload(std::string(1000, 'p'));
  for (size_t piece : {1, 2, 3, 7, 64, 5000}) {
    v1::PushPullRequest header;
    Payload payload;
    ASSERT_TRUE(
        DecodeFrame(Cut(sent.SerializeAsString(), piece), &header, &payload)
            .ok());
    EXPECT_EQ(Text(payload), sent.payload());
    EXPECT_EQ(header.SerializeAsString(), MakeRequest().SerializeAsString());
  }
}

TEST(TensorFrameTest, TakesFieldsInAnyOrderAndTheLastPayload) {
  v1::PushPullRequest first, second;
  first.set_payload("old");
  second.set_payload("new");
  const std::string bytes = first.SerializeAsString() +
                            second.SerializeAsString() +
                            MakeRequest().SerializeAsString();
  v1::PushPullRequest header;
  Payload payload;
  ASSERT_TRUE(DecodeFrame(Cut(bytes, 5), &header, &payload).ok());
  EXPECT_EQ(Text(payload), "new");
  EXPECT_EQ(header.step(), 300);
}

TEST(TensorFrameTest, EveryTruncationIsRefusedOrIsAShorterMessage) {
  v1::PushPullRequest sent = MakeRequest();
  sent.set_payload(std::string(40, 'p'));
  const std::string bytes = sent.SerializeAsString();
  for (size_t n = bytes.size() - 41; n < bytes.size(); ++n) {
    v1::PushPullRequest header;
    Payload payload;
    const absl::Status status =
        DecodeFrame(Cut(bytes.substr(0, n), 8), &header, &payload);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << n << ": " << status;
  }
}

TEST(TensorFrameTest, RandomBytesNeverDoHarm) {
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes(1 + random() % 60, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    v1::PushPullRequest header;
    Payload payload;
    const absl::Status status = DecodeFrame(Cut(bytes, 9), &header, &payload);
    refused += !status.ok();
    EXPECT_LE(payload.size(), bytes.size());
  }
  EXPECT_GT(refused, 4000);
}

// The payload's tag (15 << 3 | 2 = 0x7a) and its length in more bytes than
// protobuf reads, and a tag whose upper bits it would not see. Found by
// tests/fuzz/frame_fuzz.cc: such a message was two messages to two readers.
TEST(TensorFrameTest, ATagThatProtobufWouldNotReadIsRefused) {
  using std::string_literals::operator""s;
  for (const std::string& bytes :
       {"\xfa\x80\x80\x80\x80\x80\x00\x02pp"s,
        "\x7a\x82\x80\x80\x80\x80\x80\x00pp"s, "\xfa\x80\x80\x80\x10\x02pp"s}) {
    v1::PushPullRequest header;
    Payload payload;
    const absl::Status status = DecodeFrame(Cut(bytes, 16), &header, &payload);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message().substr(0, 17), "malformed message");
  }
}

TEST(TensorFrameTest, ALongHeaderIsRefusedBeforeItIsCopied) {
  std::string bytes = "\x0a";       // field 1, bytes
  bytes += "\xff\xff\xff\xff\x0f";  // of almost 4 GiB
  v1::PushPullRequest header;
  Payload payload;
  const absl::Status status = DecodeFrame(Cut(bytes, 16), &header, &payload);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("65536"), absl::string_view::npos);
}

TEST(TensorFrameTest, ASharedSliceKeepsItsMemoryAliveAndLetsGoOfIt) {
  SharedBuffer buffer(4);
  std::fill_n(buffer.data(), 4, 1.5f);
  {
    const grpc::ByteBuffer frame =
        EncodeFrame(v1::PushPullResponse(), {SharedSlice(buffer, 16)});
    EXPECT_FALSE(buffer.Unique());
    v1::PushPullResponse header;
    Payload payload;
    ASSERT_TRUE(DecodeFrame(frame, &header, &payload).ok());
    float values[4];
    payload.CopyTo(values);
    EXPECT_EQ(values[3], 1.5f);
  }
  EXPECT_TRUE(buffer.Unique());
}

}  // namespace
}  // namespace tributary
