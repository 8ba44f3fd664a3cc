// SPDX-License-Identifier: Apache-2.0
#include "common/host/machine.h"

#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/host/small_file.h"

namespace tributary {
namespace {

// Extensions that change how sums and products of floats are computed.
constexpr std::array<absl::string_view, 12> kVectorExtensions = {
    "sse4_2",      "avx",         "avx2",     "fma",   "f16c", "avx512f",
    "avx512_bf16", "avx512_fp16", "amx_bf16", "asimd", "sve",  "sve2"};

}  // namespace

void ReadProcessorInfo(absl::string_view cpuinfo, Machine* machine) {
  for (const absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(field.first);
    const absl::string_view value = absl::StripAsciiWhitespace(field.second);
    if (name.empty()) return;  // a blank line ends the first processor
    if (name == "model name") machine->processor = std::string(value);
    if (name != "flags" && name != "Features") continue;
    const std::vector<absl::string_view> flags = absl::StrSplit(value, ' ');
    for (const absl::string_view extension : kVectorExtensions) {
      if (std::find(flags.begin(), flags.end(), extension) != flags.end()) {
        machine->instruction_sets.emplace_back(extension);
      }
    }
  }
}

Machine ThisMachine() {
  Machine machine;
  if (utsname names{}; uname(&names) == 0) {
    machine.host = names.nodename;
    machine.processor = names.machine;
  }
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof(usable), &usable) == 0) {
    machine.processors = CPU_COUNT(&usable);
  }
  ReadProcessorInfo(ReadText("/proc/cpuinfo"), &machine);
  machine.c_library = absl::StrCat("glibc ", gnu_get_libc_version());
  return machine;
}

}  // namespace tributary
