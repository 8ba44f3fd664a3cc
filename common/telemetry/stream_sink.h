// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <mutex>
#include <string_view>

#include "absl/time/time.h"

namespace tributary {

// Writes log lines to a file descriptor such as standard error. If that is a
// pipe that nobody reads, lines are left out and counted, since a write that
// waits would stop every thread that logs. Thread-safe.
class StreamSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // How long a line waits for a slow reader. It does not wait if the line
  // before was left out.
  static constexpr absl::Duration kPatience = absl::Milliseconds(200);

  // The descriptor must outlive it.
  explicit StreamSink(int fd) : fd_(fd) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  // Waits for the reader (kPatience). True when the next piece, which a pipe
  // takes at once, can be written.
  bool IsReady() const;
  // Writes the text, or leaves out the rest of it.
  bool Write(std::string_view text);

  const int fd_;
  uint64_t left_out_ = 0;  // lines since the last one that was written
  bool torn_ = false;      // the last line that was begun lacks its end
};

}  // namespace tributary
