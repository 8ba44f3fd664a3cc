// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/failpoints/failpoints.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "common/base/failpoint.h"

namespace tributary::failpoint {
namespace {

// The number, when `text` is 1 to 9 digits; else -1.
int64_t NumberIn(std::string_view text) {
  if (text.empty() || text.size() > 9) return -1;
  for (char c : text) {
    if (c < '0' || c > '9') return -1;
  }
  return std::stoll(std::string(text));
}

// False when `text` is not name:nth:action.
bool ReadEntry(std::string_view text, Entry* entry) {
  const size_t first = text.find(':');
  const size_t second = text.find(':', first + 1);
  if (first == 0 || second == std::string_view::npos) return false;
  entry->id = text.substr(0, second);
  entry->name = text.substr(0, first);
  entry->nth = NumberIn(text.substr(first + 1, second - first - 1));
  const std::string_view action = text.substr(second + 1);
  entry->what = action;
  if (action == "kill") entry->action = Action::kKill;
  if (action == "stop") entry->action = Action::kStop;
  if (action == "error") entry->action = Action::kError;
  if (action == "hold") entry->action = Action::kHold;
  if (action.substr(0, 6) == "delay=") {
    entry->delay_ms = NumberIn(action.substr(6));
    entry->action = entry->delay_ms < 0 ? Action::kNone : Action::kDelay;
  }
  return entry->nth > 0 && entry->action != Action::kNone;
}

// True for the first caller among all processes that share the directory.
bool LeavesMark(const Entry& entry, std::string_view text) {
  if (entry.file.empty()) return true;
  const int fd =
      open(entry.file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const ssize_t written = write(fd, text.data(), text.size());
  close(fd);
  return written == static_cast<ssize_t>(text.size());
}

// Never destroyed: other threads may pass failpoints while the process exits.
Failpoints* armed = nullptr;

constexpr Hooks kHooks = {
    .reach = [](std::string_view name) { return armed->Reach(name); },
    .act = Act};

}  // namespace

bool ReadEntries(std::string_view text, std::vector<Entry>* entries) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (!ReadEntry(text.substr(0, comma), &entries->emplace_back())) {
      return false;
    }
    text.remove_prefix(comma == std::string_view::npos ? text.size()
                                                       : comma + 1);
  }
  return true;
}

Failpoints::Failpoints(std::string_view entries, std::string_view fired) {
  if (!ReadEntries(entries, &entries_)) {
    fprintf(stderr, "TRIBUTARY_FAILPOINT is no name:nth:action: %s\n",
            std::string(entries).c_str());
    abort();
  }
  if (fired.empty()) return;
  for (Entry& entry : entries_) {
    entry.file = std::string(fired) + "/" + entry.id;
  }
}

const Entry* Failpoints::Reach(std::string_view name) {
  int64_t visit = 0;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    visit = ++visits_.try_emplace(std::string(name), 0).first->second;
  }
  for (const Entry& entry : entries_) {
    if (entry.name != name || entry.nth != visit) continue;
    char text[256];
    const int size = snprintf(text, sizeof(text), "%d %.200s\n", getpid(),
                              entry.what.c_str());
    if (!LeavesMark(entry, {text, static_cast<size_t>(size)})) continue;
    fprintf(stderr, "failpoint %s: %s", entry.id.c_str(), text);
    return &entry;
  }
  return nullptr;
}

bool Act(const Entry& entry) {
  if (entry.action == Action::kKill) kill(getpid(), SIGKILL);
  if (entry.action == Action::kStop) kill(getpid(), SIGSTOP);
  if (entry.action == Action::kDelay) {
    std::this_thread::sleep_for(std::chrono::milliseconds(entry.delay_ms));
  }
  while (entry.action == Action::kHold &&
         access(entry.file.c_str(), F_OK) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return entry.action == Action::kError;
}

void Arm(std::string_view entries, std::string_view fired) {
  hooks = nullptr;
  if (entries.empty()) return;
  armed = new Failpoints(entries, fired);
  hooks = &kHooks;
}

}  // namespace tributary::failpoint
