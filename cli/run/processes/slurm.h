// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tributary {

// The allocation of this process, as Slurm's environment variables describe it.
struct SlurmOptions {
  std::string node_list;  // SLURM_JOB_NODELIST, "node[1-4,7]"; empty: none
  std::string this_node;  // SLURMD_NODENAME; empty: not in the allocation
};

struct SlurmNode {
  std::string name;     // the name that Slurm uses
  std::string address;  // where other machines reach it
};

// The nodes in the output of `scontrol --oneliner show node`.
// FailedPrecondition: it names no node, or a node without an address.
absl::StatusOr<std::vector<SlurmNode>> ParseSlurmNodes(absl::string_view text);

// The nodes of the allocation, from scontrol. FailedPrecondition: there is no
// allocation, or scontrol fails. NotFound: there is no scontrol.
absl::StatusOr<std::vector<SlurmNode>> AskSlurmNodes(
    const SlurmOptions& options);

// True when --launch asks for Slurm: "slurm", perhaps followed by options of
// srun.
bool IsSlurmLaunch(absl::string_view launch);

// Returns the launcher when --launch asks for Slurm, for the node {host}: a
// step of one task that shares the node with the job's other steps. The task
// ignores SIGTERM: before Slurm takes the nodes away, it sends SIGTERM to all
// processes at once, and a job can only be stopped well if its members live
// until the coordinator ends them.
std::string SlurmLauncher(absl::string_view launch);

}  // namespace tributary
