// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/fault_test.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"

namespace tributary {

namespace fs = std::filesystem;
using nlohmann::json;

// Whether the process is stopped: in its stat the state follows the name, which
// is in parentheses.
inline bool IsStopped(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string stat;
  std::getline(file, stat);
  const size_t bracket = stat.rfind(')');
  return bracket != std::string::npos && stat.substr(bracket, 3) == ") T";
}

class CheckpointFaultTest : public FaultTest {
 protected:
  std::vector<std::string> In(const std::string& directory,
                              int every_steps) const {
    return {"--set", absl::StrCat("checkpoint.every_steps=", every_steps),
            "--set", absl::StrCat("checkpoint.directory=", Path(directory))};
  }
  // The names of the checkpoint directories with or without a manifest, the
  // oldest first.
  std::vector<std::string> Folders(const std::string& directory,
                                   bool with_manifest) const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(Path(directory), error)) {
      if (fs::exists(entry.path() / "manifest.ckpt") == with_manifest) {
        names.push_back(entry.path().filename().string());
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  testing::ProcessResult Verify(const std::string& directory) const {
    return testing::RunProcess({testing::Program("tributary"), "checkpoint",
                                "verify", Path(directory)});
  }
  // The file of `shard` in the checkpoint `folder`.
  std::string ShardOf(const std::string& folder, int shard) const {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (absl::StartsWith(name, absl::StrCat("shard-00", shard))) {
        return entry.path().string();
      }
    }
    ADD_FAILURE() << folder << " has no shard " << shard;
    return "";
  }

  // Trains until two checkpoints are complete, then stops the workers while no
  // checkpoint is being written, except by workers.
  std::unique_ptr<RunningProcess> TrainUntilTwoAreWhole(
      bool workers_write = false) {
    EditJob("lease_seconds: 3", "lease_seconds: 60");
    auto train = Train("run", {"--set", "checkpoint.every_steps=16", "--set",
                               "training.epochs=200"});
    const std::string directory = Path("run/checkpoints");
    WaitForCheckpoint(directory, WaitForCheckpoint(directory));
    workers_ = {PidOf("run", "worker 0"), PidOf("run", "worker 1")};
    for (pid_t pid : workers_) kill(pid, SIGSTOP);
    std::vector<std::string> before;
    // Two equal listings show that no checkpoint is being written any more.
    EXPECT_TRUE(Eventually([&] {
      absl::SleepFor(absl::Milliseconds(300));
      const auto now = Folders("run/checkpoints", true);
      const bool still =
          now == before && now.size() >= 2 &&
          (workers_write || Folders("run/checkpoints", false).empty());
      before = now;
      return still;
    }));
    return train;
  }
  std::vector<pid_t> workers_;
};

}  // namespace tributary
