#include "common/checkpoint/checkpointer.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/host/steady_waits.h"
#include "common/status/status_macros.h"
#include "common/wire/shared_buffer.h"

namespace tributary {

struct Checkpointer::Image {
  Block block;
  SharedBuffer weights;
  std::vector<SharedBuffer> state;
};

struct Checkpointer::Cut {
  int64_t step = 0;
  std::vector<Image> images;
  int64_t pause_micros = 0;
};

// The state that the owner and the writing thread share.
class Checkpointer::Writer {
 public:
  explicit Writer(Options options) : options_(std::move(options)) {}

  void Take(const BlockCut& cut);
  void Run();
  // True when the thread has ended in time. Afterwards nothing is reported.
  bool Finish();

 private:
  Image Copy(const BlockCut& cut) const;
  Written Write(const Cut& cut) const;
  absl::StatusOr<v1::CheckpointFile> WriteInFolder(
      const ShardFileHeader& header,
      const std::vector<BlockImage>& images) const;
  void Tell(const Written& written);
  bool closing() const {
    absl::MutexLock lock(&mu_);
    return closing_;
  }

  const Options options_;

  mutable absl::Mutex mu_;
  std::map<int64_t, Cut> open_ ABSL_GUARDED_BY(mu_);  // some blocks missing
  // Completed while another one waited, so they were not written.
  std::vector<Written> given_up_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Cut> waiting_ ABSL_GUARDED_BY(mu_);
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;

  absl::Mutex tell_mu_ ABSL_ACQUIRED_BEFORE(mu_);  // held during on_written
};

Checkpointer::Checkpointer(Options options)
    : writer_(std::make_shared<Writer>(std::move(options))),
      thread_([writer = writer_] { writer->Run(); }) {}

void Checkpointer::Finish() {
  if (!thread_.joinable()) return;
  if (writer_->Finish()) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void Checkpointer::Take(const BlockCut& cut) { writer_->Take(cut); }

bool Checkpointer::Writer::Finish() {
  // No result may reach the owner after Finish has returned.
  {
    absl::MutexLock tell(&tell_mu_);
    absl::MutexLock lock(&mu_);
    closing_ = true;
  }
  absl::MutexLock lock(&mu_);
  return AwaitFor(&mu_, absl::Condition(&ended_), options_.finish_timeout);
}

void Checkpointer::Writer::Tell(const Written& written) {
  absl::MutexLock tell(&tell_mu_);
  if (!closing()) options_.on_written(written);
}

Checkpointer::Image Checkpointer::Writer::Copy(const BlockCut& cut) const {
  Image image{.block = *cut.block, .weights = cut.weights, .state = {}};
  for (const float* state : cut.state) {
    image.state.emplace_back(cut.block->size);
    std::copy_n(state, cut.block->size, image.state.back().data());
  }
  return image;
}

void Checkpointer::Writer::Take(const BlockCut& cut) {
  const int64_t before = options_.clock->NowMicros();
  Image image = Copy(cut);
  const int64_t paused = options_.clock->NowMicros() - before;

  absl::MutexLock lock(&mu_);
  if (closing_) return;
  Cut& open = open_[cut.steps];
  open.step = cut.steps;
  open.images.push_back(std::move(image));
  open.pause_micros += paused;
  if (open.images.size() < options_.num_blocks) return;
  if (waiting_ != nullptr) {
    given_up_.push_back({.step = cut.steps,
                         .file = absl::ResourceExhaustedError(absl::StrCat(
                             "the checkpoint of step ", cut.steps,
                             " is given up: that of step ", waiting_->step,
                             " still waits to be written")),
                         .pause_seconds = 1e-6 * open.pause_micros});
  } else {
    waiting_ = std::make_unique<Cut>(std::move(open));
  }
  open_.erase(cut.steps);
}

void Checkpointer::Writer::Run() {
  const auto work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || waiting_ != nullptr || !given_up_.empty();
  };
  while (true) {
    std::unique_ptr<Cut> next;
    std::vector<Written> given_up;
    {
      // No deadline: the wait ends with the next checkpoint or with Finish.
      absl::MutexLock lock(&mu_, absl::Condition(&work));
      if (closing_) {
        ended_ = true;
        return;
      }
      next = std::move(waiting_);
      given_up = std::exchange(given_up_, {});
    }
    if (next) Tell(Write(*next));
    for (const Written& lost : given_up) Tell(lost);
  }
}

absl::StatusOr<v1::CheckpointFile> Checkpointer::Writer::WriteInFolder(
    const ShardFileHeader& header,
    const std::vector<BlockImage>& images) const {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::string folder,
      OpenCheckpointFolder(options_.directory, header.step));
  absl::StatusOr<v1::CheckpointFile> file =
      options_.write(folder, header, images, [this] { return closing(); });
  // rmdir fails when another server's file is in the directory.
  if (!file.ok()) rmdir(folder.c_str());
  return file;
}

Checkpointer::Written Checkpointer::Writer::Write(const Cut& cut) const {
  const int64_t before = options_.clock->NowMicros();
  // Blocks may come in any order; the file holds them in the shard's order.
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
  header.step = cut.step;
  Written written{.step = cut.step, .file = absl::UnknownError("not written")};
  written.pause_seconds = 1e-6 * static_cast<double>(cut.pause_micros);
  written.file = WriteInFolder(header, images);
  // A failure of another process removes the directory while it is still empty.
  if (absl::IsNotFound(written.file.status())) {
    written.file = WriteInFolder(header, images);
  }
  written.write_seconds =
      1e-6 * static_cast<double>(options_.clock->NowMicros() - before);
  return written;
}

}  // namespace tributary
