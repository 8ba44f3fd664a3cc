// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/streamed_batches.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/batches/training_batches.h"
#include "worker/train/data/stream/stored_arrays.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

constexpr int kRows = 1003;

std::string CountingFeatures() {
  std::vector<int32_t> values(2 * kRows);
  for (int i = 0; i < 2 * kRows; ++i) values[i] = i / 2;
  return Npy("{'descr': '<i4', 'fortran_order': False, 'shape': (" +
                 std::to_string(kRows) + ", 2), }",
             BytesOf(values));
}

std::string CountingLabels() {
  std::vector<int32_t> values(kRows);
  for (int i = 0; i < kRows; ++i) values[i] = i;
  return Npy("{'descr': '<i4', 'fortran_order': False, 'shape': (" +
                 std::to_string(kRows) + ",), }",
             BytesOf(values));
}

// Rows whose two features and whose class are the number of the row.
class StreamedBatchesTest : public ::testing::Test {
 protected:
  StreamedBatchesTest()
      : features_(WriteFile("counting_x.npy", CountingFeatures())),
        labels_(WriteFile("counting_y.npy", CountingLabels())) {
    auto columns = OpenNpy(
        {.samples = InputFiles({features_}), .labels = InputFiles({labels_})},
        {}, ReadOrder::kRandom);
    EXPECT_TRUE(columns.ok()) << columns.status();
    auto stored = StoredRows::Create(*std::move(columns));
    EXPECT_TRUE(stored.ok()) << stored.status();
    auto data = Dataset::OnDisk(*stored, Normalization());
    EXPECT_TRUE(data.ok()) << data.status();
    data_ = *std::move(data);
  }

  StreamedBatches::Options Options(BatchCut cut, int rank,
                                   int64_t window_chunks = 5) const {
    return {.data = data_.get(),
            .cut = cut,
            .rank = rank,
            .order = WindowOrder({.rows = kRows,
                                  .shuffle_seed = 3,
                                  .chunk_rows = 10,
                                  .window_chunks = window_chunks})};
  }

  const std::string features_;
  const std::string labels_;
  std::unique_ptr<Dataset> data_;
};

std::vector<int64_t> Fill(StreamedBatches* batches, int64_t epoch,
                          int64_t batch) {
  Batch out;
  const absl::Status status = batches->Fill(epoch, batch, &out);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(out.rows, static_cast<int64_t>(out.labels.size()));
  EXPECT_EQ(out.features.size(), 2 * out.labels.size());
  for (size_t i = 0; i < out.features.size(); ++i) {
    EXPECT_EQ(out.features.data()[i], static_cast<float>(out.labels[i / 2]));
  }
  return out.labels;
}

TEST_F(StreamedBatchesTest, RanksTogetherSeeTheGlobalOrder) {
  for (int world : {1, 2, 3}) {
    for (int64_t global_batch : {1, 7, 64, 150, 2000}) {
      const BatchCut cut{kRows, global_batch, world};
      std::vector<std::unique_ptr<StreamedBatches>> ranks;
      for (int rank = 0; rank < world; ++rank) {
        ranks.push_back(std::make_unique<StreamedBatches>(Options(cut, rank)));
      }
      const WindowOrder order = Options(cut, 0).order;
      for (int64_t epoch = 0; epoch < 2; ++epoch) {
        std::vector<int64_t> seen(kRows, -1);
        for (int64_t b = 0; b < cut.batches_per_epoch(); ++b) {
          for (int rank = 0; rank < world; ++rank) {
            const std::vector<int64_t> rows = Fill(ranks[rank].get(), epoch, b);
            ASSERT_EQ(static_cast<int64_t>(rows.size()), cut.RankRows(b, rank));
            for (size_t i = 0; i < rows.size(); ++i) {
              seen[b * global_batch + rank + i * world] = rows[i];
            }
          }
        }
        std::vector<int64_t> wanted;
        for (int64_t w = 0; w < order.num_windows(); ++w) {
          for (uint32_t row : order.Rows(epoch, w)) wanted.push_back(row);
        }
        ASSERT_EQ(seen, wanted) << world << " ranks, batch " << global_batch;
      }
    }
  }
}

TEST_F(StreamedBatchesTest, ANewStartGoesOnWhereItSays) {
  const BatchCut cut{kRows, 30, 2};
  StreamedBatches through(Options(cut, 1));
  std::vector<std::vector<int64_t>> all;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t b = 0; b < cut.batches_per_epoch(); ++b) {
      all.push_back(Fill(&through, epoch, b));
    }
  }
  for (int64_t start : {1, 20, 33, 34, 50}) {
    StreamedBatches resumed(Options(cut, 1));
    for (int64_t k = start; k < start + 10; ++k) {
      EXPECT_EQ(Fill(&resumed, k / 34, k % 34), all[k]) << start << " " << k;
    }
  }
  EXPECT_EQ(Fill(&through, 0, 3), all[3]);  // back again
}

TEST_F(StreamedBatchesTest, OneWindowIsWhatRowsInMemoryGive) {
  const BatchCut cut{kRows, 30, 2};
  StreamedBatches streamed(Options(cut, 1, /*window_chunks=*/200));
  ShardedSampler sampler = *ShardedSampler::Create({cut, 1, /*seed=*/3});
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t b = 0; b < cut.batches_per_epoch(); ++b) {
      const absl::Span<const int64_t> rows = sampler.Rows(epoch, b);
      EXPECT_EQ(Fill(&streamed, epoch, b),
                std::vector<int64_t>(rows.begin(), rows.end()));
    }
  }
}

TEST_F(StreamedBatchesTest, AnErrorOfTheDiskIsReturned) {
  const BatchCut cut{kRows, 30, 1};
  StreamedBatches batches(Options(cut, 0));
  Fill(&batches, 0, 0);
  ASSERT_EQ(truncate(features_.c_str(), 2000), 0);
  Batch out;
  absl::Status status;
  for (int64_t b = 1; b < cut.batches_per_epoch() && status.ok(); ++b) {
    status = batches.Fill(0, b, &out);
  }
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("it was longer when the job began"));
}

// A job that goes on within an epoch compares these names.
TEST_F(StreamedBatchesTest, AnotherOrderOfWindowsHasAnotherName) {
  v1::DataSpec spec;
  spec.mutable_shuffle()->set_seed(3);
  const auto name = [&](int64_t buffer_rows) {
    spec.mutable_stream()->set_buffer_bytes(buffer_rows * data_->row_bytes());
    return WindowsOf(*data_, spec);
  };
  EXPECT_EQ(name(2 * kRows), "") << "as in memory";
  EXPECT_EQ(name(500), ", in windows of 500 chunks of 1 rows");
  EXPECT_NE(name(400), name(500));
  spec.mutable_shuffle()->set_none(true);
  EXPECT_EQ(name(500), "");
}

}  // namespace
}  // namespace tributary
