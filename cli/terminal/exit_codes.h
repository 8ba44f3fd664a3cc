// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tributary {

// Exit codes of the programs.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;   // the run failed
inline constexpr int kExitRefused = 2;  // wrong command line or job file
// Interrupted: 128 + the signal, as shells have it.

}  // namespace tributary
