// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "common/checkpoint/snapshot_collector.h"
#include "tests/simulation/job/context.h"
#include "tests/simulation/world/world.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary::simulation {

// A Checkpointer whose thread is the world's events.
class SimulatedCheckpointer
    : public std::enable_shared_from_this<SimulatedCheckpointer> {
 public:
  using OnWritten = std::function<void(const v1::CheckpointReport&)>;

  SimulatedCheckpointer(Context* context, Process* process,
                        ShardFileSeries series, size_t num_blocks,
                        OnWritten on_written);

  void Take(const BlockCut& cut);
  // Later snapshots are ignored. Calls `then` once no file is being written.
  void Finish(std::function<void()> then);

 private:
  void WriteNext();
  void Report(const WrittenSnapshot& written) const;

  Context* const context_;
  Process* const process_;
  const ShardFileSeries series_;
  const OnWritten on_written_;
  SnapshotCollector collector_;
  bool writing_ = false;
  bool closing_ = false;
  std::function<void()> on_finished_;
};

}  // namespace tributary::simulation
