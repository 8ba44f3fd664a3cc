// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_checkpointer.h"

#include <utility>

#include "common/member/report_checkpoint.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {

SimulatedCheckpointer::SimulatedCheckpointer(Context* context, Process* process,
                                             ShardFileSeries series,
                                             size_t num_blocks,
                                             OnWritten on_written)
    : context_(context),
      process_(process),
      series_(std::move(series)),
      on_written_(std::move(on_written)),
      collector_(num_blocks) {}

void SimulatedCheckpointer::Take(const BlockCut& cut) {
  if (closing_) return;
  collector_.Add(cut.steps, BlockSnapshot(cut), /*pause_micros=*/0);
  WriteNext();
}

void SimulatedCheckpointer::Finish(std::function<void()> then) {
  closing_ = true;
  if (!writing_) return then();
  on_finished_ = std::move(then);
}

void SimulatedCheckpointer::WriteNext() {
  if (writing_ || closing_ || !collector_.due()) return;
  writing_ = true;
  // A crash before this leaves no file.
  context_->world.After(context_->world.random().Scale(kMilli, 100 * kMilli),
                        process_, World::Kind::kIdle,
                        [self = shared_from_this(), work = collector_.Take()] {
                          self->writing_ = false;
                          self->collector_.Written();
                          for (const WrittenSnapshot& failed : work.failed)
                            self->Report(failed);
                          const ShardSnapshot& snapshot = work.snapshot;
                          self->Report({.step = snapshot.step,
                                        .file = self->context_->disk.WriteShard(
                                            self->series_, snapshot)});
                          if (!self->closing_) return self->WriteNext();
                          if (self->on_finished_) self->on_finished_();
                        });
}

void SimulatedCheckpointer::Report(const WrittenSnapshot& written) const {
  on_written_(ReportOf(written, series_.state_names, series_.plan_epoch));
}

}  // namespace tributary::simulation
