// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tributary {

// An error with the text "PATH: ACTION: errno's text". ResourceExhausted when
// the disk is full, DataLoss when it failed, NotFound when the file does not
// exist, else Unavailable.
absl::Status FileError(const std::string& path, absl::string_view action,
                       int error);

// Syncs a directory's entries to the disk. "" is the current directory.
absl::Status SyncFolder(const std::string& folder);

// Syncs the contents of the folder's files, then its entries. The folder must
// contain only files.
absl::Status SyncFiles(const std::string& folder);

}  // namespace tributary
