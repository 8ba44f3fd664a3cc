#include "common/checkpoint/checkpointer.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_directory.h"

namespace tributary {

Checkpointer::Checkpointer(Options options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

void Checkpointer::Finish() {
  {
    absl::MutexLock lock(&mu_);
    closing_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

Checkpointer::Image Checkpointer::Copy(const BlockCut& cut) const {
  Image image{.block = *cut.block, .weights = cut.weights, .state = {}};
  for (const float* state : cut.state) {
    image.state.emplace_back(cut.block->size);
    std::copy_n(state, cut.block->size, image.state.back().data());
  }
  return image;
}

void Checkpointer::Take(const BlockCut& cut) {
  const int64_t before = options_.clock->NowMicros();
  Image image = Copy(cut);
  const int64_t paused = options_.clock->NowMicros() - before;

  absl::MutexLock lock(&mu_);
  if (closing_) return;
  Cut& open = open_[cut.steps];
  open.images.push_back(std::move(image));
  open.pause_micros += paused;
  if (open.images.size() < options_.num_blocks) return;
  if (waiting_ != nullptr) {
    given_up_.push_back({.step = cut.steps,
                         .file = absl::ResourceExhaustedError(absl::StrCat(
                             "the checkpoint of step ", cut.steps,
                             " is given up: that of step ", waiting_->first,
                             " still waits to be written")),
                         .pause_seconds = 1e-6 * open.pause_micros});
  } else {
    waiting_ =
        std::make_unique<std::pair<int64_t, Cut>>(cut.steps, std::move(open));
  }
  open_.erase(cut.steps);
}

void Checkpointer::Run() {
  const auto work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || waiting_ != nullptr || !given_up_.empty();
  };
  while (true) {
    std::unique_ptr<std::pair<int64_t, Cut>> next;
    std::vector<Written> given_up;
    {
      // Ends with the object: the steps of training decide when.
      absl::MutexLock lock(&mu_, absl::Condition(&work));
      if (closing_) return;
      next = std::move(waiting_);
      given_up = std::exchange(given_up_, {});
    }
    for (const Written& lost : given_up) options_.on_written(lost);
    if (next) options_.on_written(Write(next->first, next->second));
  }
}

Checkpointer::Written Checkpointer::Write(int64_t step, const Cut& cut) const {
  const int64_t before = options_.clock->NowMicros();
  const std::filesystem::path folder =
      std::filesystem::path(options_.directory) / CheckpointFolderName(step);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  // Blocks may come in any order; the file holds them in the shard's.
  std::vector<const Image*> order;
  for (const Image& image : cut.images) order.push_back(&image);
  std::sort(order.begin(), order.end(), [](const Image* a, const Image* b) {
    return a->block.index < b->block.index;
  });
  std::vector<BlockImage> images;
  for (const Image* image : order) {
    BlockImage& out = images.emplace_back();
    out.slices = image->block.slices;
    out.weights = image->weights.data();
    out.num_elements = image->block.size;
    for (const SharedBuffer& state : image->state) {
      out.state.push_back(state.data());
    }
  }
  ShardFileHeader header = options_.header;
  header.step = step;
  return {.step = step,
          .file = WriteShardFile(folder.string(), header, images),
          .pause_seconds = 1e-6 * static_cast<double>(cut.pause_micros),
          .write_seconds =
              1e-6 * static_cast<double>(options_.clock->NowMicros() - before)};
}

}  // namespace tributary
