// SPDX-License-Identifier: Apache-2.0
#include "server/aggregate/checked_update.h"

#include "common/wire/crc32c/crc32c.h"
#include "common/wire/crc32c/crc32c_chunks.h"

namespace tributary {
uint32_t UpdateAndChecksum(const SumAndUpdateVersion& version,
                           const OptimizerStep& step, SumAndUpdate call,
                           uint32_t crc) {
  ChunkFold fold = BeginCrc32cChunks(crc);
  call.fold = &fold;
  const int64_t folded = version.run(step, call);
  return ExtendCrc32c(FinishCrc32cChunks(fold), call.weight_out + folded,
                      static_cast<size_t>(call.n - folded) * sizeof(float));
}

}  // namespace tributary
