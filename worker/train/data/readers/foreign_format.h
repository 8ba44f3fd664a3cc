// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tributary {

// Names the format of a file that begins with `start` and is not text in UTF-8,
// and how to convert it, for an error message: "this is xz data; to unpack it:
// xz -dc < train.csv.xz > train.csv". Returns "" if it may be text in UTF-8.
// `packed`: the file is compressed by gzip, and the bytes are unpacked.
std::string ForeignFormat(absl::string_view start, const std::string& file,
                          bool packed);

// The same for a text source. bytes: every byte of the text is a token, so only
// packed data is foreign.
std::string ForeignText(absl::string_view start, const std::string& file,
                        bool packed, bool bytes);

// Returns a shell command that sends `file` through `filter`, a program that
// reads standard input, into a file without the ending `suffix`, under a name
// that no file has yet.
std::string ConvertCommand(absl::string_view filter, const std::string& file,
                           absl::string_view suffix, bool packed);

}  // namespace tributary
