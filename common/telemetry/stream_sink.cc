// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/stream_sink.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace tributary {

bool StreamSink::IsReady() const {
  pollfd waiting = {.fd = fd_, .events = POLLOUT, .revents = 0};
  const int64_t patience =
      left_out_ > 0 ? 0 : absl::ToInt64Milliseconds(kPatience);
  return poll(&waiting, 1, static_cast<int>(patience)) > 0;
}

// A pipe that is ready takes PIPE_BUF bytes without a wait (pipe(7)).
bool StreamSink::Write(std::string_view text) {
  while (!text.empty()) {
    if (!IsReady()) return false;
    const ssize_t written =
        write(fd_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
    torn_ = !text.empty();
  }
  return true;
}

void StreamSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  if (torn_) line.push_back('\n');
  if (left_out_ > 0) {
    const std::string what = absl::StrCat(
        "lines left out of this log, because nobody read it: ", left_out_);
    spdlog::details::log_msg notice = message;
    notice.level = spdlog::level::warn;
    notice.payload = what;
    formatter_->format(notice, line);
  }
  formatter_->format(message, line);
  if (Write({line.data(), line.size()})) {
    left_out_ = 0;
  } else {
    ++left_out_;
  }
}

}  // namespace tributary
