// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "common/wire/access.h"

namespace tributary {

// Adds --tls and --token-file to a program that calls others.
inline void AddAccessFlags(CLI::App& app, AccessOptions* options) {
  app.add_option("--tls", options->tls,
                 "folder with ca.crt, tls.crt and tls.key, as `tributary\n"
                 "certificates` makes it; -: a parent gives them on standard\n"
                 "input; default: clear text")
      ->type_name("FOLDER");
  app.add_option("--token-file", options->token_file,
                 "file with the job's token, for processes without a\n"
                 "certificate; only with --tls")
      ->type_name("FILE");
}

// Adds --insecure, too, to a program that listens.
inline void AddListenerAccessFlags(CLI::App& app, AccessOptions* options) {
  AddAccessFlags(app, options);
  app.add_flag("--insecure", options->insecure,
               "without --tls: listen in clear text to other machines, too;\n"
               "whoever reaches the port can then read and change the job");
}

inline void AddInsecureGroupsFlag(CLI::App& app, bool* insecure_groups) {
  app.add_flag("--insecure-groups", *insecure_groups,
               "groups of workers (all_reduce, tensor and pipeline\n"
               "parallelism) and speed tests listen to other machines, too;\n"
               "they are in clear text, also with TLS");
}

// --checkpoint-key FILE, of a program that starts jobs or reads checkpoints.
inline void AddCheckpointKeyFlag(CLI::App& app, std::string* file) {
  app.add_option("--checkpoint-key", *file,
                 "file with a secret of at least 32 characters: checkpoints\n"
                 "have a keyed checksum, and one without is refused")
      ->type_name("FILE");
}

// The key in the file that the option names; empty: the option was not given.
// Errors as ReadToken.
inline absl::StatusOr<std::string> ReadCheckpointKey(const std::string& file) {
  return file.empty() ? std::string() : ReadToken(file);
}

inline void AddCheckpointRootFlag(CLI::App& app,
                                  std::vector<std::string>* roots) {
  app.add_option("--checkpoint-root", *roots,
                 "read and write checkpoints below this folder alone; may be\n"
                 "repeated; default: wherever the job says")
      ->type_name("FOLDER")
      ->allow_extra_args(false);
}

inline void AddReflectionFlag(CLI::App& app, bool* reflection) {
  app.add_flag("--reflection", *reflection,
               "describe the services to tools like grpcurl");
}

}  // namespace tributary
