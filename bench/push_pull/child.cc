// SPDX-License-Identifier: Apache-2.0
#include "bench/push_pull/child.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace tributary::bench {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * time.tv_usec;
}

}  // namespace

Wire::~Wire() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Wire::Send(const std::string& message) {
  const uint64_t size = message.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes += message;
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t more = send(descriptor_, bytes.data() + sent,
                              bytes.size() - sent, MSG_NOSIGNAL);
    if (more <= 0) _exit(1);
    sent += static_cast<size_t>(more);
  }
}

std::string Wire::Receive() {
  const auto read_all = [this](char* to, size_t size) {
    for (size_t got = 0; got < size;) {
      const ssize_t more = read(descriptor_, to + got, size - got);
      if (more <= 0) _exit(1);
      got += static_cast<size_t>(more);
    }
  };
  uint64_t size = 0;
  read_all(reinterpret_cast<char*>(&size), sizeof(size));
  std::string message(size, '\0');
  read_all(message.data(), size);
  return message;
}

Child Child::Fork(const std::function<void(Wire&)>& body) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    std::perror("socketpair");
    std::exit(1);
  }
  std::fflush(stdout);
  const pid_t process = fork();
  if (process < 0) {
    std::perror("fork");
    std::exit(1);
  }
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    Wire wire(ends[1]);
    body(wire);
    _exit(0);
  }
  close(ends[1]);
  return Child(process, ends[0]);
}

Child::~Child() {
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

}  // namespace tributary::bench
