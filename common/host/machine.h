// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tributary {

// The machine that this process runs on, as far as results may depend on it.
struct Machine {
  std::string host;       // its name
  std::string processor;  // "AMD EPYC 7B13"; else the kind: "aarch64"
  int processors = 0;     // that this process may use
  // Vector extensions that the kernel reports: "avx2", "fma", "avx512f".
  std::vector<std::string> instruction_sets;
  std::string c_library;  // "glibc 2.36"; empty: unknown
};

Machine ThisMachine();

// Fills processor and instruction_sets from the first processor in the text of
// /proc/cpuinfo. Fields that the text lacks stay as they are.
void ReadProcessorInfo(absl::string_view cpuinfo, Machine* machine);

}  // namespace tributary
