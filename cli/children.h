#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/child_process.h"

namespace tributary {

// The servers and workers of a run on this machine.
class Children {
 public:
  absl::Status Start(ChildProcess::Options options);

  // What to say of the first child that has ended without success; killed ones
  // come first, as the others may have failed because of them. Empty: none.
  std::string FirstFailure();
  // The same for killed ones alone.
  std::string FirstKilled();

  // Waits until all have ended by themselves; false after `timeout`.
  bool WaitForAll(absl::Duration timeout);

 private:
  std::vector<std::unique_ptr<ChildProcess>> children_;
};

}  // namespace tributary
