// Contributions in the formats of `wire`: identity, size and finiteness are
// those of the encoded bytes.
#include <string>
#include <vector>

#include "common/wire/crc32c.h"
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
};

TEST_P(EncodedContributionTest, AreAveragedInFloat32) {
  const Answer first = Push(Encoded(0, {1, 2, -3, 0.5}));
  const Answer second = Push(Encoded(1, {3, 2, -1, 0.25}));
  ASSERT_TRUE(first->has_value());
  const float* weights = (**first)->weights.data();
  EXPECT_EQ(std::vector<float>(weights, weights + 4),
            (std::vector<float>{-2, -2, 2, -0.375}));
  EXPECT_EQ(First(second), -2);
}

TEST_P(EncodedContributionTest, TheSameBytesAreADuplicateAndOthersAConflict) {
  const Answer first = Push(Encoded(0, {1, 2, 3, 4}));
  const Answer again = Push(Encoded(0, {1, 2, 3, 4}));
  EXPECT_EQ(shard_->counters().duplicates, 1u);
  // One more in the last place of every format.
  EXPECT_THAT((**Push(Encoded(0, {1, 2, 3, 4.03125f}))).status(),
              StatusIs(absl::StatusCode::kAborted, "not deterministic"));
  // A difference that rounding takes away is none.
  const Answer rounded = Push(Encoded(0, {1, 2, 3, 4.0001f}));
  EXPECT_FALSE(rounded->has_value());
  EXPECT_EQ(shard_->counters().duplicates, 2u);
  EXPECT_EQ(shard_->counters().conflicts, 1u);
  Push(Encoded(1, {1, 2, 3, 4}));
  EXPECT_EQ(First(first), -1);
  EXPECT_EQ(First(again), -1);
}

TEST_P(EncodedContributionTest, OtherSizesAreRefused) {
  for (const size_t size : {0u, 1u, 7u, 9u, 16u}) {  // 8 is wanted
    EXPECT_THAT((**Push(WithBytes(0, std::string(size, '\0')))).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, "wanted 8"))
        << size;
  }
  Contribution none = WithBytes(0, std::string(8, '\0'));
  none.samples = 0;
  EXPECT_THAT((**Push(none)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "wanted 0"));
  EXPECT_EQ(shard_->counters().contributions, 0u);
}

TEST_P(EncodedContributionTest, ADamagedPayloadIsAskedForAgain) {
  Contribution c = Encoded(0, {1, 2, 3, 4});
  std::string bytes(8, '?');
  c.payload.CopyTo(bytes.data());
  for (size_t bit = 0; bit < 64; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    c.payload = Payload::Copy(damaged.data(), damaged.size());
    EXPECT_THAT((**Push(c)).status(),
                StatusIs(absl::StatusCode::kDataLoss, "damaged on the way"));
  }
}

// What the format cannot hold has become infinite on the worker.
TEST_P(EncodedContributionTest, AnOverflowIsAGradientThatIsNotFinite) {
  const float too_large =
      encoding_->name() == std::string("float16") ? 65520.0f : 3.4e38f;
  EXPECT_THAT((**Push(Encoded(0, {1, 2, -too_large, too_large}))).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "not finite in \"w\", element 2"));
  EXPECT_EQ(shard_->counters().nonfinite, 1u);
}

INSTANTIATE_TEST_SUITE_P(Formats, EncodedContributionTest,
                         ::testing::Values("bfloat16", "float16"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tributary
