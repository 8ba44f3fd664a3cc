// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tributary::testing {

// Attacks that go on at the same time, each on a thread of its own, until End.
class AttackThreads {
 public:
  // Attacks until over(), and counts the attacks.
  using Body = std::function<void(std::atomic<int64_t>* count)>;

  ~AttackThreads() { End(); }

  void Begin(const std::string& name, Body body);
  bool over() const { return over_; }
  // Ends the attacks and returns when all threads have ended.
  void End();

  // How often each attack was made, by its name.
  std::map<std::string, int64_t> Counts() const;

 private:
  struct Attack {
    std::string name;
    std::atomic<int64_t> count{0};
    std::thread thread;
  };

  std::atomic<bool> over_{false};
  std::vector<std::unique_ptr<Attack>> attacks_;
};

}  // namespace tributary::testing
