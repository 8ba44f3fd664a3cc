#pragma once

#include <string>
#include <vector>

#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/checkpoint_reader.h"

namespace tributary {

// Checkpoints for a person.

// A table, newest first; why the incomplete ones are none stands in their line.
std::string ListText(const std::vector<CheckpointInfo>& checkpoints);

// One line when every report is OK; else a line for each damage.
std::string VerifyText(const std::string& folder,
                       const std::vector<FileReport>& reports);

}  // namespace tributary
