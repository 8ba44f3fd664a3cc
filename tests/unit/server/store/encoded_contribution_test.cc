// SPDX-License-Identifier: Apache-2.0
// Contributions in the formats of `wire`: identity, size and finiteness are
// those of the encoded bytes.
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/wire/crc32c/crc32c.h"
#include "server/store/rejection.h"
#include "tests/unit/server/store/parameter_shard_fixture.h"

namespace tributary {
namespace {

using testing::StatusIs;

class EncodedContributionTest
    : public ParameterShardTest,
      public ::testing::WithParamInterface<const char*> {
 protected:
  EncodedContributionTest() {
    encoding_ = FindEncoding(GetParam());
    Create(2, {});
    Initialize();
  }

  Contribution Encoded(uint32_t rank, const std::vector<float>& gradient) {
    const auto n = static_cast<int64_t>(gradient.size());
    std::string bytes(static_cast<size_t>(encoding_->Bytes(n)), '?');
    encoding_->Encode(n, gradient.data(), bytes.data());
    return WithBytes(rank, bytes);
  }
  static Contribution WithBytes(uint32_t rank, const std::string& bytes) {
    Contribution c;
    c.rank = rank;
    c.incarnation = 1;
    c.samples = 1;
    c.payload = Payload::Copy(bytes.data(), bytes.size());
    c.crc32c = Crc32c(bytes.data(), bytes.size());
    return c;
  }
  size_t wanted_bytes() const {
    return static_cast<size_t>(encoding_->Bytes(4));
  }
  std::vector<float> Decoded(const std::vector<float>& gradient) {
    std::string bytes(wanted_bytes(), '?');
    encoding_->Encode(4, gradient.data(), bytes.data());
    std::vector<float> decoded(4);
    encoding_->Decode(4, bytes.data(), decoded.data());
    return decoded;
  }
};

TEST_P(EncodedContributionTest, AreAveragedInFloat32) {
  const std::vector<float> one = {1, 2, -3, 0.5}, other = {3, 2, -1, 0.25};
  const Answer first = Push(Encoded(0, one));
  const Answer second = Push(Encoded(1, other));
  ASSERT_TRUE(first->has_value());
  const float* weights = (**first)->weights.data();
  std::vector<float> wanted = {-2, -2, 2, -0.375};
  if (encoding_->compresses()) {
    for (size_t i = 0; i < 4; ++i) {
      wanted[i] = -(Decoded(one)[i] + Decoded(other)[i]) / 2;
    }
  }
  EXPECT_EQ(std::vector<float>(weights, weights + 4), wanted);
  EXPECT_EQ(First(second), wanted[0]);
}

TEST_P(EncodedContributionTest, TheSameBytesAreADuplicateAndOthersAConflict) {
  const Answer first = Push(Encoded(0, {1, 2, 3, 4}));
  const Answer again = Push(Encoded(0, {1, 2, 3, 4}));
  EXPECT_EQ(shard_->counters().duplicates, 1u);
  // 4.03125 is another number than 4 in every format.
  EXPECT_THAT((**Push(Encoded(0, {1, 2, 3, 4.03125f}))).status(),
              StatusIs(absl::StatusCode::kAborted, "not deterministic"));
  EXPECT_EQ(shard_->counters().conflicts, 1u);
  if (!encoding_->compresses()) {
    // A difference that rounding removes does not count.
    const Answer rounded = Push(Encoded(0, {1, 2, 3, 4.0001f}));
    EXPECT_FALSE(rounded->has_value());
    EXPECT_EQ(shard_->counters().duplicates, 2u);
    EXPECT_EQ(shard_->counters().conflicts, 1u);
  }
  Push(Encoded(1, {1, 2, 3, 4}));
  EXPECT_EQ(First(first), -Decoded({1, 2, 3, 4})[0]);
  EXPECT_EQ(First(again), First(first));
}

TEST_P(EncodedContributionTest, OtherSizesAreRefused) {
  const std::string wanted = absl::StrCat("wanted ", wanted_bytes());
  for (const size_t size : {size_t{0}, size_t{1}, wanted_bytes() - 1,
                            wanted_bytes() + 1, size_t{16}}) {
    EXPECT_THAT((**Push(WithBytes(0, std::string(size, '\0')))).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, wanted))
        << size;
  }
  Contribution none = WithBytes(0, std::string(wanted_bytes(), '\0'));
  none.samples = 0;
  EXPECT_THAT((**Push(none)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "wanted 0"));
  EXPECT_EQ(shard_->counters().contributions, 0u);
}

TEST_P(EncodedContributionTest, ADamagedPayloadIsAskedForAgain) {
  Contribution c = Encoded(0, {1, 2, 3, 4});
  std::string bytes(wanted_bytes(), '?');
  c.payload.CopyTo(bytes.data());
  for (size_t bit = 0; bit < 8 * wanted_bytes(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    c.payload = Payload::Copy(damaged.data(), damaged.size());
    EXPECT_THAT((**Push(c)).status(),
                StatusIs(absl::StatusCode::kDataLoss, "damaged on the way"));
  }
}

// A number that the format cannot hold has become infinite on the worker.
TEST_P(EncodedContributionTest, AnOverflowIsAGradientThatIsNotFinite) {
  const float too_large =
      encoding_->compresses() ? std::numeric_limits<float>::infinity()
      : encoding_->name() == std::string("float16") ? 65520.0f
                                                    : 3.4e38f;
  EXPECT_THAT((**Push(Encoded(0, {1, 2, -too_large, too_large}))).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "not finite in \"w\", element 2"));
  EXPECT_EQ(shard_->counters().nonfinite, 1u);
}

INSTANTIATE_TEST_SUITE_P(Formats, EncodedContributionTest,
                         ::testing::Values("bfloat16", "float16", "int8",
                                           "top_k", "one_bit"),
                         [](const auto& info) { return info.param; });

// Even where a gradient that is not finite would be accepted and skipped.
TEST_F(ParameterShardTest, IndicesThatDoNotAscendAreRefused) {
  encoding_ = FindEncoding("top_k")->WithFraction(0.5);
  ParameterShard::Options options;
  options.num_workers = 2;
  options.training.policy = std::make_unique<BulkSynchronous>();
  options.training.nonfinite = NonFiniteAction::kSkip;
  Create(std::move(options));
  Initialize();
  const std::vector<float> gradient = {1, 2, 3, 4};
  for (const uint16_t second : {uint16_t{2}, uint16_t{1}, uint16_t{4}}) {
    std::string bytes(12, '?');
    encoding_->Encode(4, gradient.data(), bytes.data());  // indices 2 and 3
    std::memcpy(bytes.data() + 2, &second, sizeof second);
    Contribution c = Make(0, 0, 1);
    c.payload = Payload::Copy(bytes.data(), bytes.size());
    c.crc32c = Crc32c(bytes.data(), bytes.size());
    const absl::Status status = (**Push(c)).status();
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "the gradient of rank 0 for step 1 cannot be decoded "
                         "from \"w\", element 0 on"));
    EXPECT_EQ(RejectionOf(status), Rejection::kMalformed);
  }
  EXPECT_EQ(shard_->counters().contributions, 0u);
}

}  // namespace
}  // namespace tributary
