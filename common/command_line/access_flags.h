// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/command_line/command_line.h"
#include "common/wire/identity/access.h"

namespace tributary {

// Adds --tls and --token-file to a program that calls others.
void AddAccessFlags(CommandLine& command, AccessOptions* options);

// The same with --insecure, for a program that listens.
void AddListenerAccessFlags(CommandLine& command, AccessOptions* options);

void AddInsecureGroupsFlag(CommandLine& command, bool* insecure_groups);

// Adds --checkpoint-key FILE to a program that starts jobs or reads
// checkpoints.
void AddCheckpointKeyFlag(CommandLine& command, std::string* file);

// The key in the file that the option names; empty: the option was not given.
// Errors as ReadToken.
absl::StatusOr<std::string> ReadCheckpointKey(const std::string& file);

void AddCheckpointRootFlag(CommandLine& command,
                           std::vector<std::string>* roots);

void AddReflectionFlag(CommandLine& command, bool* reflection);

}  // namespace tributary
