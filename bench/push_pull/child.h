// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>

namespace tributary::bench {

// One end of a pair of sockets between two processes. A message that cannot be
// sent or received ends the process: the other one is gone.
class Wire {
 public:
  explicit Wire(int descriptor) : descriptor_(descriptor) {}
  Wire(Wire&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Wire& operator=(Wire&&) = delete;
  ~Wire();

  void Send(const std::string& message);
  std::string Receive();

 private:
  int descriptor_;
};

// A forked process and the wire to it. Its destructor waits for the process.
class Child {
 public:
  // Forks a process that runs `body` and exits. The caller may not have
  // threads.
  static Child Fork(const std::function<void(Wire&)>& body);
  Child(Child&& other) noexcept
      : process_(std::exchange(other.process_, 0)),
        wire_(std::move(other.wire_)) {}
  Child& operator=(Child&&) = delete;
  ~Child();

  Wire& wire() { return wire_; }

 private:
  Child(pid_t process, int descriptor) : process_(process), wire_(descriptor) {}

  pid_t process_;
  Wire wire_;
};

// User and system time of this process in seconds.
double ProcessorSeconds();

}  // namespace tributary::bench
