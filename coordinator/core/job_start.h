#pragma once

#include <cstdint>
#include <string>

namespace tributary {

// Where a job starts; by default at the beginning. A resumed job starts from a
// checkpoint of an earlier run.
struct JobStart {
  int64_t step = 0;            // updates applied
  std::string restore_from;    // the checkpoint's directory; empty: none
  uint64_t lineage = 0;        // of the job's checkpoints; 0: a new one
  uint32_t data_checksum = 0;  // from the checkpoint's manifest; 0: unknown
};

}  // namespace tributary
