// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/checkpointer.h"
#include "common/checkpoint/files/folder_name.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/testing/soon.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::StatusIs;
using testing::TemporaryFolderTest;

const auto kSoon = absl::ToChronoSeconds(testing::kSoon);

// Two parameters of 4 and 2 elements in two blocks, one state.
class CheckpointerTest : public TemporaryFolderTest {
 protected:
  CheckpointerTest() {
    for (int i = 0; i < 2; ++i) {
      Block& block = blocks_[i];
      block.index = i;
      block.size = i == 0 ? 4 : 2;
      block.slices.push_back({.parameter = i, .begin = 0, .end = block.size});
    }
  }

  void Start(const std::string& directory) {
    Checkpointer::Options options;
    options.directory = directory;
    options.series.parameters = {{"a", {4}}, {"b", {2}}};
    options.series.state_names = {"momentum"};
    options.num_blocks = 2;
    options.finish_timeout = finish_timeout_;
    options.write = write_;
    options.on_written = [this](const Checkpointer::Written& written) {
      std::unique_lock<std::mutex> lock(mu_);
      written_.push_back(written);
      changed_.notify_all();
      changed_.wait_for(lock, kSoon, [this] { return !held_; });
    };
    checkpointer_ = std::make_unique<Checkpointer>(std::move(options));
  }

  void Take(int64_t step, int block, float value) {
    SharedBuffer weights(blocks_[block].size);
    std::vector<SharedBuffer> state;
    state.emplace_back(blocks_[block].size);
    for (int64_t i = 0; i < blocks_[block].size; ++i) {
      weights.data()[i] = value;
      state[0].data()[i] = -value;
    }
    checkpointer_->Take({.steps = step,
                         .skipped_steps = step / 10,
                         .block = &blocks_[block],
                         .weights = weights,
                         .state = {state[0].data()}});
    // Training goes on at once: the snapshot must not see it.
    for (int64_t i = 0; i < blocks_[block].size; ++i) state[0].data()[i] = 99;
  }

  std::vector<Checkpointer::Written> WaitFor(size_t count) {
    std::unique_lock<std::mutex> lock(mu_);
    EXPECT_TRUE(changed_.wait_for(lock, kSoon,
                                  [&] { return written_.size() >= count; }));
    return written_;
  }

  absl::Duration finish_timeout_ = absl::Seconds(20);
  std::function<decltype(WriteCheckpointFile)> write_ = WriteCheckpointFile;
  Block blocks_[2];
  std::mutex mu_;
  std::condition_variable changed_;
  bool held_ = false;  // on_written holds the writer's thread
  std::vector<Checkpointer::Written> written_;
  std::unique_ptr<Checkpointer> checkpointer_;
};

TEST_F(CheckpointerTest, WritesAFileOnceEveryBlockOfTheStepIsThere) {
  Start(folder());
  Take(20, 1, 5.0f);
  Take(20, 0, 3.0f);
  const auto written = WaitFor(1);
  ASSERT_EQ(written[0].step, 20);
  TRIBUTARY_ASSERT_OK(written[0].file);
  const auto file = ShardFile::Open(folder() + "/" + CheckpointFolderName(20) +
                                    "/" + written[0].file->name());
  TRIBUTARY_ASSERT_OK(file);
  EXPECT_EQ((*file)->header().step, 20);
  EXPECT_EQ((*file)->header().skipped_steps, 2);
  PageBuffer buffer;
  std::vector<float> values(2);
  const auto& range = (*file)->ranges().back();
  ASSERT_EQ(range.parameter, 1) << "blocks stand in the shard's order";
  TRIBUTARY_EXPECT_OK(
      (*file)->Read(range, 0, 0, absl::MakeSpan(values), &buffer));
  EXPECT_EQ(values, std::vector<float>({5, 5}));
  TRIBUTARY_EXPECT_OK(
      (*file)->Read(range, 1, 0, absl::MakeSpan(values), &buffer));
  EXPECT_EQ(values, std::vector<float>({-5, -5}));
}

TEST_F(CheckpointerTest, ACutThatWaitsGivesWayToALaterOneAndIsTold) {
  held_ = true;
  Start(folder());
  Take(10, 0, 1.0f);
  Take(10, 1, 1.0f);
  WaitFor(1);  // and on_written holds the thread
  for (int64_t step : {20, 30}) {
    Take(step, 0, 1.0f);
    Take(step, 1, 1.0f);
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    held_ = false;
  }
  changed_.notify_all();
  const auto written = WaitFor(3);
  EXPECT_EQ(written[1].step, 20) << "results are told in the order of steps";
  EXPECT_THAT(written[1].file.status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "the checkpoint of step 20 was still waiting to be "
                       "written when that of step 30 was due"));
  EXPECT_EQ(written[2].step, 30);
  TRIBUTARY_EXPECT_OK(written[2].file);
}

TEST_F(CheckpointerTest, ADiskThatDoesNotAnswerIsLeftBehind) {
  struct Disk {
    std::mutex mu;
    std::condition_variable changed;
    bool asked = false;
    bool answers = false;
    bool done = false;
  };
  const auto disk = std::make_shared<Disk>();
  finish_timeout_ = absl::Milliseconds(1);
  write_ = [disk](const std::string&, const ShardFileHeader&,
                  absl::Span<const BlockImage>,
                  const std::function<bool()>& cancelled)
      -> absl::StatusOr<v1::CheckpointFile> {
    std::unique_lock<std::mutex> lock(disk->mu);
    disk->asked = true;
    disk->changed.notify_all();
    disk->changed.wait_for(lock, kSoon, [&] { return disk->answers; });
    EXPECT_TRUE(cancelled());
    disk->done = true;
    disk->changed.notify_all();
    return v1::CheckpointFile();
  };
  Start(folder());
  Take(10, 0, 1.0f);
  Take(10, 1, 1.0f);
  std::unique_lock<std::mutex> lock(disk->mu);
  ASSERT_TRUE(disk->changed.wait_for(lock, kSoon, [&] { return disk->asked; }));
  lock.unlock();
  checkpointer_->Finish();  // returns although the disk does not
  lock.lock();
  EXPECT_FALSE(disk->done);
  disk->answers = true;
  disk->changed.notify_all();
  lock.unlock();
  checkpointer_.reset();
  write_ = nullptr;
  // The writer's thread holds `disk` until the thread ends.
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  while (disk.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  ASSERT_EQ(disk.use_count(), 1);
  EXPECT_TRUE(disk->done);
  std::lock_guard<std::mutex> told(mu_);
  EXPECT_TRUE(written_.empty()) << "whom it would tell is gone";
}

TEST_F(CheckpointerTest, AFileThatIsGivenUpInTheMiddleLeavesNothing) {
  write_ = [](const std::string& directory, const ShardFileHeader& header,
              absl::Span<const BlockImage> blocks,
              const std::function<bool()>&) {
    int asked = 0;
    // Stops as if the plan had ended after the first block.
    auto written = WriteCheckpointFile(directory, header, blocks,
                                       [&asked] { return ++asked > 1; });
    EXPECT_EQ(asked, 2);
    return written;
  };
  Start(folder());
  Take(10, 0, 1.0f);
  Take(10, 1, 1.0f);
  EXPECT_THAT(WaitFor(1)[0].file.status(),
              StatusIs(absl::StatusCode::kCancelled, "not wanted any more"));
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
}

TEST_F(CheckpointerTest, AFolderThatCannotBeMadeIsToldByPath) {
  Start("/proc/no such place");
  Take(10, 0, 1.0f);
  Take(10, 1, 1.0f);
  const auto written = WaitFor(1);
  EXPECT_FALSE(written[0].file.ok());
  EXPECT_NE(written[0].file.status().message().find("/proc/no such place"),
            absl::string_view::npos);
}

}  // namespace
}  // namespace tributary
