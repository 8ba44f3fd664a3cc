// SPDX-License-Identifier: Apache-2.0
#include "common/host/private_files.h"

#include <sys/stat.h>

#include <optional>

namespace tributary {
namespace {

constexpr mode_t kOthers = 077;
std::optional<mode_t> earlier_mask;

}  // namespace

void KeepFilesPrivate() {
  const mode_t before = umask(kOthers);
  if (!earlier_mask) earlier_mask = before;
}

mode_t EarlierFileMask() {
  if (earlier_mask) return *earlier_mask;
  const mode_t mask = umask(kOthers);  // the only way to read it
  umask(mask);
  return mask;
}

}  // namespace tributary
