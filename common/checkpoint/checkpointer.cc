// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/checkpointer.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/mutex.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/host/steady_waits.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

absl::StatusOr<v1::CheckpointFile> TryToWrite(
    const std::string& directory, const ShardFileHeader& header,
    absl::Span<const BlockImage> blocks,
    const std::function<bool()>& cancelled) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string folder,
                             OpenCheckpointFolder(directory, header.step));
  absl::StatusOr<v1::CheckpointFile> file =
      WriteShardFile(folder, header, blocks, cancelled);
  // rmdir fails when another server's file is in the directory.
  if (!file.ok()) rmdir(folder.c_str());
  return file;
}

}  // namespace

absl::StatusOr<v1::CheckpointFile> WriteCheckpointFile(
    const std::string& directory, const ShardFileHeader& header,
    absl::Span<const BlockImage> blocks,
    const std::function<bool()>& cancelled) {
  absl::StatusOr<v1::CheckpointFile> file =
      TryToWrite(directory, header, blocks, cancelled);
  // Another process that fails removes the directory while it is still empty.
  return absl::IsNotFound(file.status())
             ? TryToWrite(directory, header, blocks, cancelled)
             : file;
}

// The state that the owner and the writing thread share.
class Checkpointer::Writer {
 public:
  explicit Writer(Options options)
      : options_(std::move(options)), collector_(options_.num_blocks) {}

  void Take(const BlockCut& cut);
  void SetBest(int64_t step) {
    absl::MutexLock lock(&mu_);
    collector_.SetBest(step);
  }
  void Run();
  // True when the thread has ended in time. Afterwards nothing is reported.
  bool Finish();

 private:
  Written Write(const ShardSnapshot& snapshot) const;
  void Tell(const Written& written);
  bool closing() const {
    absl::MutexLock lock(&mu_);
    return closing_;
  }

  const Options options_;

  mutable absl::Mutex mu_;
  SnapshotCollector collector_ ABSL_GUARDED_BY(mu_);
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;

  absl::Mutex tell_mu_ ABSL_ACQUIRED_BEFORE(mu_);  // held during on_written
};

Checkpointer::Checkpointer(Options options)
    : writer_(std::make_shared<Writer>(std::move(options))),
      thread_(std::in_place, [writer = writer_] { writer->Run(); }) {}

void Checkpointer::Finish() {
  if (!thread_) return;
  writer_->Finish() ? thread_->join() : thread_->detach();
  thread_.reset();
}

void Checkpointer::Take(const BlockCut& cut) { writer_->Take(cut); }

void Checkpointer::SetBest(int64_t step) { writer_->SetBest(step); }

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

void Checkpointer::Writer::Take(const BlockCut& cut) {
  const int64_t before = options_.clock->NowMicros();
  BlockSnapshot block(cut);
  const int64_t paused = options_.clock->NowMicros() - before;
  absl::MutexLock lock(&mu_);
  if (!closing_) collector_.Add(cut.steps, std::move(block), paused);
}

void Checkpointer::Writer::Run() {
  const absl::Cleanup end = [this] {
    absl::MutexLock lock(&mu_);
    ended_ = true;
  };
  const auto due = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || collector_.due();
  };
  while (true) {
    SnapshotCollector::Work work;
    {
      absl::MutexLock lock(&mu_);
      collector_.Written();
      AwaitFor(&mu_, absl::Condition(&due), absl::InfiniteDuration());
      if (closing_) return;
      work = collector_.Take();
    }
    for (const Written& failed : work.failed) Tell(failed);
    Tell(Write(work.snapshot));
  }
}

Checkpointer::Written Checkpointer::Writer::Write(
    const ShardSnapshot& snapshot) const {
  const int64_t before = options_.clock->NowMicros();
  const std::vector<BlockImage> images = snapshot.Images();
  const ShardFileHeader header{options_.series, snapshot.step,
                               snapshot.skipped_steps()};
  Written written{
      .step = snapshot.step,
      .file = options_.write(options_.directory, header, images,
                             [this] { return closing(); }),
      .pause_seconds = 1e-6 * static_cast<double>(snapshot.pause_micros)};
  written.write_seconds =
      1e-6 * static_cast<double>(options_.clock->NowMicros() - before);
  return written;
}

}  // namespace tributary
