#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tributary {

// "PATH: ACTION: what errno says". ResourceExhausted: there is no room.
// DataLoss: the disk failed. NotFound: there is no such file. Else Unavailable.
absl::Status FileError(const std::string& path, absl::string_view action,
                       int error);

// Brings a folder's entries to the disk; "" is the working folder.
absl::Status SyncFolder(const std::string& folder);

}  // namespace tributary
