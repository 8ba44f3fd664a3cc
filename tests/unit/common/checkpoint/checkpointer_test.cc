#include "common/checkpoint/checkpointer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "common/checkpoint/checkpoint_directory.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::StatusIs;
using testing::TemporaryFolderTest;

constexpr auto kSoon = std::chrono::seconds(20);

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
    options.header.parameters = {{"a", {4}}, {"b", {2}}};
    options.header.state_names = {"momentum"};
    options.num_blocks = 2;
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
    checkpointer_->Take({step, &blocks_[block], weights, {state[0].data()}});
    // Training goes on at once: the cut must not see it.
    for (int64_t i = 0; i < blocks_[block].size; ++i) state[0].data()[i] = 99;
  }

  std::vector<Checkpointer::Written> WaitFor(size_t count) {
    std::unique_lock<std::mutex> lock(mu_);
    EXPECT_TRUE(changed_.wait_for(lock, kSoon,
                                  [&] { return written_.size() >= count; }));
    return written_;
  }

  Block blocks_[2];
  std::mutex mu_;
  std::condition_variable changed_;
  bool held_ = false;  // the writer's thread stands in on_written
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

TEST_F(CheckpointerTest, ACutThatFindsAnotherWaitingIsGivenUpAndTold) {
  held_ = true;
  Start(folder());
  Take(10, 0, 1.0f);
  Take(10, 1, 1.0f);
  WaitFor(1);  // and the thread stands still
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
  EXPECT_EQ(written[1].step, 30);
  EXPECT_THAT(written[1].file.status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "that of step 20 still waits"));
  EXPECT_EQ(written[2].step, 20);
  TRIBUTARY_EXPECT_OK(written[2].file);
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
