// SPDX-License-Identifier: Apache-2.0
#include "common/host/process_limits.h"

#include <signal.h>
#include <sys/resource.h>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

// With less address space gRPC cannot start its threads: it hangs, or ends the
// process without a message.
constexpr uint64_t kLeastAddressSpace = uint64_t{1152} << 20;

// How many of `limit` files the connections of peers may take.
uint64_t ForPeers(uint64_t limit) { return limit / 4 * 3; }

uint64_t LimitOf(int resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

void PrepareProcessLimits() {
  signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

uint64_t FileLimit() { return LimitOf(RLIMIT_NOFILE); }

absl::Status CheckProcessLimits(uint64_t files) {
  if (const uint64_t limit = FileLimit(); ForPeers(limit) < files) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this process may have ", limit,
        " files and connections open (ulimit -n), three quarters of them for "
        "this job, which needs ",
        files));
  }
  if (const uint64_t limit = LimitOf(RLIMIT_AS); limit < kLeastAddressSpace) {
    return absl::FailedPreconditionError(
        absl::StrCat("this process may use ", limit >> 20,
                     " MiB of addresses (ulimit -v), "
                     "wanted at least ",
                     kLeastAddressSpace >> 20, " MiB"));
  }
  return absl::OkStatus();
}

uint64_t FilesForPeers() { return ForPeers(FileLimit()); }

}  // namespace tributary
