// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

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

inline void AddReflectionFlag(CLI::App& app, bool* reflection) {
  app.add_flag("--reflection", *reflection,
               "describe the services to tools like grpcurl");
}

}  // namespace tributary
