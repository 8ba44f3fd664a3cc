// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tributary {

// Makes SIGTERM and SIGINT end this process at once. The process is killed by
// the signal. Process 1 of a container, which the default action does not kill,
// exits with code 128 + signal. SIGTERM stays ignored if the program that
// started this one ignores it, as a launcher does when the coordinator alone is
// to end its members (cli/run/slurm.h). Call it first in main.
//
// For daemons, which may die at any point: they write files aside and rename
// them, and other processes notice their expired lease.
void EndOnSignal();

}  // namespace tributary
