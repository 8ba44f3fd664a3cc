// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/batches/batch_loader.h"

#include <atomic>
#include <functional>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/soon.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Every row's one feature is its number.
void GatherNumbers(absl::Span<const int64_t> rows, Batch* out) {
  out->rows = static_cast<int64_t>(rows.size());
  out->features.Resize(rows.size());
  out->labels.assign(rows.begin(), rows.end());
  for (size_t i = 0; i < rows.size(); ++i) {
    out->features.data()[i] = static_cast<float>(rows[i]);
  }
}

using GatherRows = std::function<void(absl::Span<const int64_t>, Batch*)>;

BatchLoader::Options MakeOptions(BatchCut cut, int rank, int64_t accumulation,
                                 int64_t epochs,
                                 GatherRows gather = GatherNumbers) {
  return {.fill = SampledBatches(
              *ShardedSampler::Create({cut, rank, /*seed=*/3}), gather),
          .rank = rank,
          .plan = *StepPlan::Create(
              {.cut = cut, .accumulation = accumulation, .epochs = epochs})};
}

std::unique_ptr<BatchLoader> StartLoader(BatchLoader::Options options) {
  auto loader = BatchLoader::Start(std::move(options));
  EXPECT_TRUE(loader.ok()) << loader.status();
  return *std::move(loader);
}

absl::Duration Patiently() { return testing::kSoon; }

struct Seen {
  int64_t step, micro_batch, first_row;
  std::vector<int64_t> rows;
  friend bool operator==(const Seen&, const Seen&) = default;
};

std::vector<Seen> TakeAll(BatchLoader& loader) {
  std::vector<Seen> all;
  while (true) {
    absl::StatusOr<const Batch*> batch = loader.Next(Patiently());
    if (absl::IsOutOfRange(batch.status())) return all;
    EXPECT_TRUE(batch.ok()) << batch.status();
    if (!batch.ok()) return all;
    const Batch& b = **batch;
    for (int64_t i = 0; i < b.rows; ++i) {
      EXPECT_EQ(b.features.data()[i], static_cast<float>(b.labels[i]));
    }
    all.push_back({b.step, b.micro_batch, b.first_row, b.labels});
  }
}

TEST(BatchLoaderTest, DeliversEveryMicroBatchOfThePlanInOrder) {
  const BatchCut cut{/*rows=*/23, /*global_batch=*/4, /*world=*/2};
  const auto loader = StartLoader(MakeOptions(cut, /*rank=*/1, 3, 2));
  const std::vector<Seen> all = TakeAll(*loader);
  // 6 global batches an epoch, 3 a step.
  ASSERT_EQ(all.size(), 12u);
  ShardedSampler sampler = *ShardedSampler::Create({cut, 1, 3});
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(all[i].step, i / 3);
    EXPECT_EQ(all[i].micro_batch, i % 3);
    // Rows of the step's global batch count through its micro-batches.
    EXPECT_EQ(all[i].first_row, i % 3 * 4 + 1);
    const absl::Span<const int64_t> rows = sampler.Rows(i / 6, i % 6);
    EXPECT_EQ(all[i].rows, std::vector<int64_t>(rows.begin(), rows.end()));
  }
  EXPECT_THAT(all[5].rows, ::testing::SizeIs(1));  // 23 = 5 * 4 + 3
}

TEST(BatchLoaderTest, ARunThatGoesOnSeesWhatTheFirstWouldHaveSeen) {
  const BatchCut cut{/*rows=*/50, /*global_batch=*/8, /*world=*/2};
  const auto whole = StartLoader(MakeOptions(cut, 0, 2, 3));
  const std::vector<Seen> all = TakeAll(*whole);
  BatchLoader::Options options = MakeOptions(cut, 0, 2, 3);
  options.first_step = 5;  // 4 steps of 7 batches an epoch
  const std::vector<Seen> rest = TakeAll(*StartLoader(std::move(options)));
  ASSERT_LT(rest.size(), all.size());
  EXPECT_EQ(rest.front().step, 5);
  EXPECT_EQ(rest, std::vector<Seen>(all.end() - rest.size(), all.end()));
}

TEST(BatchLoaderTest, ATakenBatchStaysWhileTheNextAreGathered) {
  std::atomic<int> gathered = 0;
  absl::Notification ring_full;
  BatchLoader::Options options = MakeOptions(
      {100, 10, 1}, 0, 1, 1, [&](absl::Span<const int64_t> rows, Batch* out) {
        GatherNumbers(rows, out);
        if (++gathered == 3) ring_full.Notify();
      });
  options.depth = 3;
  const auto loader = StartLoader(std::move(options));
  const absl::StatusOr<const Batch*> first = loader->Next(Patiently());
  ASSERT_TRUE(first.ok()) << first.status();
  const std::vector<int64_t> rows = (*first)->labels;
  ASSERT_TRUE(ring_full.WaitForNotificationWithTimeout(testing::kSoon));
  // The loader has no room for a fourth batch until this one is given back.
  EXPECT_EQ(gathered, 3);
  EXPECT_EQ((*first)->labels, rows);
  ASSERT_TRUE(loader->Next(Patiently()).ok());
}

TEST(BatchLoaderTest, NextGivesUpAtItsDeadlineAndMayBeAskedAgain) {
  absl::Notification go;
  const auto loader = StartLoader(MakeOptions(
      {10, 5, 1}, 0, 1, 1, [&](absl::Span<const int64_t> rows, Batch* out) {
        go.WaitForNotification();
        GatherNumbers(rows, out);
      }));
  const absl::Status late = loader->Next(absl::ZeroDuration()).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("batch 0"));
  go.Notify();
  EXPECT_EQ(TakeAll(*loader).size(), 2u);
  EXPECT_TRUE(absl::IsOutOfRange(loader->Next(Patiently()).status()));
}

TEST(BatchLoaderTest, AnErrorOfTheSourceComesAfterTheBatchesBeforeIt) {
  BatchLoader::Options options = MakeOptions({50, 10, 1}, 0, 1, 1);
  options.fill = [fill = options.fill](int64_t epoch, int64_t batch,
                                       Batch* out) {
    return batch == 2 ? absl::DataLossError("the disk is gone")
                      : fill(epoch, batch, out);
  };
  const auto loader = StartLoader(std::move(options));
  EXPECT_TRUE(loader->Next(Patiently()).ok());
  EXPECT_TRUE(loader->Next(Patiently()).ok());
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(loader->Next(Patiently()).status(),
              absl::DataLossError("the disk is gone"));
  }
}

TEST(BatchLoaderTest, StopsCleanlyWithAFullRingAndAnEmptyOne) {
  for (int taken : {0, 1, 4}) {
    const auto loader = StartLoader(MakeOptions({1000, 10, 1}, 0, 1, 1));
    for (int i = 0; i < taken; ++i) {
      ASSERT_TRUE(loader->Next(Patiently()).ok());
    }
  }
}

TEST(BatchLoaderTest, ARankWithoutRowsGetsAnEmptyBatch) {
  const auto loader = StartLoader(MakeOptions({5, 4, 2}, /*rank=*/1, 1, 1));
  const std::vector<Seen> all = TakeAll(*loader);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[1].rows, ElementsAre());
}

TEST(BatchLoaderTest, ImpossibleOptionsAreRefused) {
  BatchLoader::Options options = MakeOptions({10, 5, 1}, 0, 1, 1);
  options.first_step = 3;
  EXPECT_THAT(std::string(BatchLoader::Start(options).status().message()),
              HasSubstr("from 0 to 2, got 3"));
  options.first_step = 2;  // a finished run: nothing left
  EXPECT_TRUE(TakeAll(*StartLoader(options)).empty());
  options.depth = 1;
  EXPECT_THAT(std::string(BatchLoader::Start(options).status().message()),
              HasSubstr("at least 2 batches in memory, got 1"));
}

}  // namespace
}  // namespace tributary
