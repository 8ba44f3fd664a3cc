// SPDX-License-Identifier: Apache-2.0
#pragma once

// Named places in the code where a test makes a process fail. Only test builds
// define TRIBUTARY_FAILPOINTS; they read the failpoints from the environment:
//
//   TRIBUTARY_FAILPOINT=name:nth:action[,name:nth:action...]
//   TRIBUTARY_FAILPOINT_FIRED=DIRECTORY
//
// When a process reaches the place `name` for the nth time (counted from 1), it
// does the action and reports it on stderr:
//   kill        kills itself with SIGKILL
//   stop        stops itself with SIGSTOP until it is continued
//   error       takes the error branch of TRIBUTARY_FAILPOINT_OR
//   delay=MS    sleeps for MS milliseconds
// With a DIRECTORY, each entry fires once: in the first process that reaches
// it, and not again in its replacement. It leaves the file DIRECTORY/name:nth
// with one line, the process ID and the action. Without a DIRECTORY, the entry
// fires in every process. In all other builds the macros do nothing.

#ifdef TRIBUTARY_FAILPOINTS

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tributary::failpoint {

enum class Action { kNone, kKill, kStop, kError, kDelay };

struct Entry {
  std::string id;  // name:nth
  std::string name;
  int64_t nth = 0;
  std::string what;  // the action as written in the entry
  Action action = Action::kNone;
  int64_t delay_ms = 0;
};

// The number, when `text` is 1 to 9 digits; else -1.
inline int64_t NumberIn(std::string_view text) {
  if (text.empty() || text.size() > 9) return -1;
  for (char c : text) {
    if (c < '0' || c > '9') return -1;
  }
  return std::stoll(std::string(text));
}

// False when `text` is not name:nth:action.
inline bool ReadEntry(std::string_view text, Entry* entry) {
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
  if (action.substr(0, 6) == "delay=") {
    entry->delay_ms = NumberIn(action.substr(6));
    entry->action = entry->delay_ms < 0 ? Action::kNone : Action::kDelay;
  }
  return entry->nth > 0 && entry->action != Action::kNone;
}

// Parses entries separated by commas. False when one is malformed.
inline bool ReadEntries(std::string_view text, std::vector<Entry>* entries) {
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

// True for the first caller among all processes that share `directory`.
inline bool LeavesMark(const std::string& directory, const Entry& entry,
                       std::string_view text) {
  if (directory.empty()) return true;
  const int fd = open((directory + "/" + entry.id).c_str(),
                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const ssize_t written = write(fd, text.data(), text.size());
  close(fd);
  return written == static_cast<ssize_t>(text.size());
}

// One failpoint. Thread-safe. Without entries, a hit only reads a constant.
class Place {
 public:
  Place(std::string_view name, const char* entries, const char* fired)
      : directory_(fired == nullptr ? "" : fired) {
    std::vector<Entry> all;
    if (entries != nullptr && !ReadEntries(entries, &all)) {
      fprintf(stderr, "TRIBUTARY_FAILPOINT is no name:nth:action: %s\n",
              entries);
      abort();
    }
    for (const Entry& entry : all) {
      if (entry.name == name) entries_.push_back(entry);
    }
  }
  explicit Place(std::string_view name)
      : Place(name, getenv("TRIBUTARY_FAILPOINT"),
              getenv("TRIBUTARY_FAILPOINT_FIRED")) {}

  // Returns the entry that fires now, or null. Reports it before the action.
  const Entry* Hit() {
    if (entries_.empty()) return nullptr;
    const int64_t hit = ++hits_;
    for (const Entry& entry : entries_) {
      if (entry.nth != hit) continue;
      char text[256];
      const int size = snprintf(text, sizeof(text), "%d %.200s\n", getpid(),
                                entry.what.c_str());
      if (!LeavesMark(directory_, entry, {text, static_cast<size_t>(size)})) {
        continue;
      }
      fprintf(stderr, "failpoint %s: %s", entry.id.c_str(), text);
      return &entry;
    }
    return nullptr;
  }

 private:
  const std::string directory_;
  std::vector<Entry> entries_;  // of this place; fixed at construction
  std::atomic<int64_t> hits_{0};
};

// Does the entry's action. True when the caller must take its error branch.
inline bool Fire(const Entry* entry) {
  if (entry == nullptr) return false;
  if (entry->action == Action::kKill) kill(getpid(), SIGKILL);
  if (entry->action == Action::kStop) kill(getpid(), SIGSTOP);
  if (entry->action == Action::kDelay) {
    std::this_thread::sleep_for(std::chrono::milliseconds(entry->delay_ms));
  }
  return entry->action == Action::kError;
}

}  // namespace tributary::failpoint

// `statement` is the error branch, such as `return Status`. The other actions
// happen in its place and skip it.
#define TRIBUTARY_FAILPOINT_OR(name, statement)       \
  do {                                                \
    static ::tributary::failpoint::Place place(name); \
    if (::tributary::failpoint::Fire(place.Hit())) {  \
      statement;                                      \
    }                                                 \
  } while (false)

// Runs `statement` before the action, for a failpoint just before an effect.
#define TRIBUTARY_FAILPOINT_AFTER(name, statement)           \
  do {                                                       \
    static ::tributary::failpoint::Place place(name);        \
    if (const auto* entry = place.Hit(); entry != nullptr) { \
      statement;                                             \
      ::tributary::failpoint::Fire(entry);                   \
    }                                                        \
  } while (false)

#else

#define TRIBUTARY_FAILPOINT_OR(name, statement) \
  do {                                          \
  } while (false)
#define TRIBUTARY_FAILPOINT_AFTER(name, statement) \
  do {                                             \
  } while (false)

#endif

#define TRIBUTARY_FAILPOINT(name) TRIBUTARY_FAILPOINT_OR(name, )
