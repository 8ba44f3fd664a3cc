// SPDX-License-Identifier: Apache-2.0
// fault-proxy: the proxy of tests/testing/faults/tcp_proxy.h as a program. It
// prints a line when it listens, disturbs connections until its input ends, and
// then prints how often each rule fired.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "common/command_line/parse_command_line.h"
#include "tests/testing/faults/tcp_proxy.h"

int main(int argc, char** argv) {
  tributary::testing::TcpProxy::Options options;
  tributary::CommandLine program(
      "fault-proxy: disturbs connections by rules, for tests.", "fault-proxy");
  program.AddOption("--control", &options.control, "path of its control socket")
      .Required();
  program.AddOption("--seed", &options.seed, "draws delays and bits");
  program.AddOption("RULE", &options.rules,
                    "FROM>TO DIRECTION KIND [NAME=N]...");
  if (const auto ended = tributary::ParseCommandLine(program, argc, argv)) {
    return *ended;
  }
  const auto proxy = tributary::testing::TcpProxy::Start(options);
  if (proxy == nullptr) return 1;
  std::printf("listens on %s\n", options.control.c_str());
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  for (size_t rule = 0; rule < options.rules.size(); ++rule) {
    std::printf("%lld %s\n", static_cast<long long>(proxy->fired(rule)),
                options.rules[rule].c_str());
  }
  return 0;
}
