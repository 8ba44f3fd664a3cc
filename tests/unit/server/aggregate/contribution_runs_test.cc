// SPDX-License-Identifier: Apache-2.0
#include "server/aggregate/contribution_runs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clones.h"
#include "kernels/ops.h"

namespace tributary {
namespace {

constexpr int64_t kElements = 2 * ContributionRuns::kLongest + 17;

// A gradient whose bytes lie in pieces of `piece` bytes, each at an address of
// its own.
Payload InPieces(const std::vector<float>& gradient, size_t piece) {
  struct Memory {
    std::vector<std::string> strings;
  };
  auto memory = std::make_shared<Memory>();
  const auto* const bytes = reinterpret_cast<const char*>(gradient.data());
  const size_t size = gradient.size() * sizeof(float);
  for (size_t at = 0; at < size; at += piece) {
    memory->strings.push_back(
        "?" + std::string(bytes + at, std::min(piece, size - at)));
  }
  std::vector<Payload::Piece> pieces;
  for (const std::string& s : memory->strings) {
    pieces.emplace_back(s.data() + 1, s.size() - 1);
  }
  return Payload(std::move(pieces), memory);
}

Contribution Of(uint32_t rank, const Payload& payload, uint64_t samples) {
  Contribution c;
  c.rank = rank;
  c.samples = samples;
  if (samples > 0) c.payload = payload;
  c.crc32c = c.payload.ScanFloats().crc32c;
  return c;
}

Contribution Constant(uint32_t rank, float value, uint64_t samples) {
  const std::vector<float> gradient(kElements, value);
  return Of(rank,
            Payload::Copy(gradient.data(), gradient.size() * sizeof(float)),
            samples);
}

const Block kBlock = {.size = kElements, .slices = {{.end = kElements}}};

// The runs of all contributions, of which none was added early.
ContributionRuns AllOf(const Block& block,
                       const GradientAggregator& aggregator) {
  return {block, aggregator, /*sum=*/nullptr,
          static_cast<int>(aggregator.contributions().size())};
}

std::vector<float> Average(const std::vector<Contribution>& arrivals,
                           const Block& block = kBlock) {
  GradientAggregator aggregator(
      {.num_workers = static_cast<int>(arrivals.size())});
  for (const Contribution& c : arrivals) {
    EXPECT_EQ(aggregator.Add(c), GradientAggregator::Verdict::kAdded);
  }
  ContributionRuns runs = AllOf(block, aggregator);
  std::vector<float> mean(kElements, -1);
  const auto ops = CreateCpuOps();
  for (int64_t begin = 0, n = 0; begin < kElements; begin += n) {
    n = runs.Next(kElements - begin);
    ops->WeightedSum(n, runs.count(), runs.parts(), runs.weights(),
                     mean.data() + begin);
  }
  return mean;
}

// 1e8 and -1e8 swallow the 1 unless they meet first: a sum that tells its
// order. Four equal shares scale by 1/4 exactly.
TEST(ContributionRunsTest, AreInRankOrderWhateverTheArrival) {
  const Contribution a = Constant(0, 1e8f, 4), b = Constant(1, -1e8f, 4),
                     c = Constant(2, 1.0f, 4), d = Constant(3, 1.0f, 4);
  const std::vector<float> in_order = Average({a, b, c, d});
  EXPECT_EQ(in_order[0], 0.5f);
  EXPECT_EQ(Average({d, b, c, a}), in_order);
  EXPECT_EQ(Average({c, a, d, b}), in_order);
}

TEST(ContributionRunsTest, WeighBySamplesAndLeaveOutWhoHasNone) {
  const std::vector<float> mean = Average(
      {Constant(0, 4.0f, 3), Constant(1, 99.0f, 0), Constant(2, 8.0f, 1)});
  EXPECT_EQ(mean, std::vector<float>(kElements, 5.0f));
}

TEST(ContributionRunsTest, NobodyHasSamplesMeansNoParts) {
  GradientAggregator aggregator({.num_workers = 1});
  aggregator.Add(Constant(0, 1.0f, 0));
  ContributionRuns runs = AllOf(kBlock, aggregator);
  EXPECT_EQ(runs.count(), 0);
  EXPECT_EQ(runs.Next(kElements), ContributionRuns::kLongest);
  EXPECT_EQ(runs.Next(17), 17);
}

// Pieces end within floats and at different places in each contribution. Every
// element must come once, in order, in runs of at least a chunk.
TEST(ContributionRunsTest, ReadEveryElementAcrossThePiecesBorders) {
  std::vector<float> up(kElements), down(kElements);
  for (int64_t i = 0; i < kElements; ++i) {
    up[i] = static_cast<float>(i);
    down[i] = -up[i];
  }
  for (const size_t piece : {3u, 1000u, 4096u, 8192u, 10001u, 1u << 20}) {
    GradientAggregator aggregator({.num_workers = 2});
    aggregator.Add(Of(0, InPieces(up, piece), 1));
    aggregator.Add(Of(1, InPieces(down, piece + 4), 1));
    ContributionRuns runs = AllOf(kBlock, aggregator);
    for (int64_t begin = 0, n = 0; begin < kElements; begin += n) {
      n = runs.Next(kElements - begin);
      ASSERT_LE(n, ContributionRuns::kLongest);
      ASSERT_GE(n, std::min<int64_t>(512, kElements - begin));
      for (int r = 0; r < 2; ++r) {
        const UnalignedFloat* const part = runs.parts()[r];
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(float{part[i]}, (r == 0 ? up : down)[begin + i])
              << "pieces of " << piece << " bytes, contribution " << r;
        }
      }
    }
  }
}

// Two workers against sums in double. A contribution is what its encoding
// makes of it; the sum itself is of float32.
TEST(ContributionRunsTest, EncodedContributionsCountAsTheirDecodedValues) {
  for (const auto& encoding : AllEncodings()) {
    Block block = kBlock;
    block.slices[0].encoding = encoding.get();
    std::vector<double> wanted(kElements);
    std::vector<Contribution> arrivals;
    for (uint32_t rank : {1u, 0u}) {
      const uint64_t samples = rank == 0 ? 3 : 1;
      std::vector<float> gradient(kElements);
      for (int64_t i = 0; i < kElements; ++i) {
        gradient[i] =
            std::sin(static_cast<float>(i) * (0.7f + static_cast<float>(rank)));
      }
      std::string bytes(encoding->Bytes(kElements), '?');
      encoding->Encode(kElements, gradient.data(), bytes.data());
      encoding->Decode(kElements, bytes.data(), gradient.data());
      for (int64_t i = 0; i < kElements; ++i) {
        wanted[i] += static_cast<double>(samples) / 4 * gradient[i];
      }
      arrivals.push_back({.rank = rank, .samples = samples});
      arrivals.back().payload = Payload::Copy(bytes.data(), bytes.size());
    }
    const std::vector<float> mean = Average(arrivals, block);
    for (int64_t i = 0; i < kElements; ++i) {
      ASSERT_NEAR(mean[i], wanted[i], 1e-7) << encoding->name() << " " << i;
    }
  }
}

}  // namespace
}  // namespace tributary
