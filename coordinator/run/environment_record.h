// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/host/machine.h"
#include "coordinator/core/job_plan.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The machine, libraries and data that a run was computed with, for
// environment.json (docs/run-directory.md). Two runs of one job may differ only
// in these.
struct EnvironmentRecord {
  Machine machine;  // of the coordinator
  // The processes that hold the ranks, by rank, with their arithmetic.
  std::vector<v1::RegisterRequest> workers;
  // A JSON object as `tributary-worker --check-data` prints it, of the data and
  // the initial weights; empty: unknown.
  std::string data;
  // The training data as the workers declared them; 0: unknown.
  int64_t training_rows = 0;
  uint32_t training_checksum = 0;
  JobStart start;
};

std::string EnvironmentJson(const EnvironmentRecord& record);

// The versions of this program, its libraries and its compiler, by name.
std::map<std::string, std::string> ProgramVersions();

}  // namespace tributary
