// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace tributary {

// From now on only this user can read the files and folders that this process
// creates. Call it before other threads start.
void KeepFilesPrivate();

// The mask of new files before KeepFilesPrivate, for programs that this process
// starts for the user.
mode_t EarlierFileMask();

}  // namespace tributary
