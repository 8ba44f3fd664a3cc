// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/checkpoint_files.h"

#include "tests/simulation/world/micros.h"

namespace tributary::simulation {

std::function<decltype(WriteCheckpointFile)> WriterOf(Context* context) {
  return [context](const std::string&, const ShardFileHeader& header,
                   absl::Span<const BlockImage> blocks,
                   const std::function<bool()>& cancelled)
             -> absl::StatusOr<v1::CheckpointFile> {
    context->fibers.Sleep(context->world.random().Scale(kMilli, 100 * kMilli),
                          World::Kind::kIdle);
    if (cancelled()) return absl::CancelledError("not wanted any more");
    return context->disk.WriteShard(header, blocks);
  };
}

}  // namespace tributary::simulation
