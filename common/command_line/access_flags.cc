// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/access_flags.h"

namespace tributary {

void AddAccessFlags(CommandLine& command, AccessOptions* options) {
  command
      .AddOption("--tls", &options->tls,
                 "folder with ca.crt, tls.crt and tls.key, as `tributary\n"
                 "certificates` makes it; -: a parent gives them on standard\n"
                 "input; default: clear text")
      .TypeName("FOLDER");
  command
      .AddOption("--token-file", &options->token_file,
                 "file with the job's token, for processes without a\n"
                 "certificate; only with --tls")
      .TypeName("FILE");
}

void AddListenerAccessFlags(CommandLine& command, AccessOptions* options) {
  AddAccessFlags(command, options);
  command.AddFlag(
      "--insecure", &options->insecure,
      "without --tls: listen in clear text to other machines, too;\n"
      "whoever reaches the port can then read and change the job");
}

void AddInsecureGroupsFlag(CommandLine& command, bool* insecure_groups) {
  command.AddFlag(
      "--insecure-groups", insecure_groups,
      "groups of workers (all_reduce, tensor and pipeline\n"
      "parallelism) and speed tests listen to other machines, too;\n"
      "they are in clear text, also with TLS");
}

void AddCheckpointKeyFlag(CommandLine& command, std::string* file) {
  command
      .AddOption("--checkpoint-key", file,
                 "file with a secret of at least 32 characters: checkpoints\n"
                 "have a keyed checksum, and one without is refused")
      .TypeName("FILE");
}

absl::StatusOr<std::string> ReadCheckpointKey(const std::string& file) {
  return file.empty() ? std::string() : ReadToken(file);
}

void AddCheckpointRootFlag(CommandLine& command,
                           std::vector<std::string>* roots) {
  command
      .AddOption("--checkpoint-root", roots,
                 "read and write checkpoints below this folder alone; may be\n"
                 "repeated; default: wherever the job says")
      .TypeName("FOLDER")
      .OnePerFlag();
}

void AddReflectionFlag(CommandLine& command, bool* reflection) {
  command.AddFlag("--reflection", reflection,
                  "describe the services to tools like grpcurl");
}

}  // namespace tributary
