// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/checkpoint_reader.h"

namespace tributary {

// Text about checkpoints for people.

// A table, newest first; an incomplete checkpoint's line says what is missing.
std::string ListText(const std::vector<CheckpointInfo>& checkpoints);

// One line when every report is OK; otherwise one line per damaged file.
std::string VerifyText(const std::string& folder,
                       const std::vector<FileReport>& reports);

}  // namespace tributary
