// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/log.h"

#include <signal.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/telemetry/stream_sink.h"

namespace tributary {
namespace {

std::atomic<int64_t> g_index{-1};
std::atomic<uint64_t> g_warnings{0};
std::atomic<uint64_t> g_errors{0};

absl::string_view View(spdlog::string_view_t text) {
  return {text.data(), text.size()};
}

class LineFormatter final : public spdlog::formatter {
 public:
  LineFormatter(LogFormat format, std::string role)
      : format_(format), role_(std::move(role)) {}

  void format(const spdlog::details::log_msg& message,
              spdlog::memory_buf_t& line) override {
    const std::string text = FormatLogLine(
        format_, {.time = absl::FromChrono(message.time),
                  .level = View(spdlog::level::to_string_view(message.level)),
                  .role = role_,
                  .index = g_index.load(std::memory_order_relaxed),
                  .message = View(message.payload)});
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(format_, role_);
  }

 private:
  const LogFormat format_;
  const std::string role_;
};

// Counts warnings and errors and writes nothing.
class CountingSink final : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& message) override {
    if (message.level == spdlog::level::warn) ++g_warnings;
    if (message.level >= spdlog::level::err) ++g_errors;
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

absl::StatusOr<spdlog::level::level_enum> LevelOf(const std::string& name) {
  if (name == "debug") return spdlog::level::debug;
  if (name == "info") return spdlog::level::info;
  if (name == "warning") return spdlog::level::warn;
  if (name == "error") return spdlog::level::err;
  return absl::InvalidArgumentError(absl::StrCat(
      "log level must be debug, info, warning or error, got \"", name, "\""));
}

}  // namespace

absl::Status SetUpLog(const LogOptions& options) {
  const auto level = LevelOf(options.level);
  if (!level.ok()) return level.status();
  std::vector<spdlog::sink_ptr> sinks;
  if (options.standard_error) {
    signal(SIGPIPE, SIG_IGN);  // the log's reader may end first
    sinks.push_back(std::make_shared<StreamSink>(STDERR_FILENO));
  }
  if (!options.file.empty()) {
    try {
      sinks.push_back(
          std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file));
    } catch (const spdlog::spdlog_ex& error) {
      return absl::UnavailableError(absl::StrCat("log file: ", error.what()));
    }
  }
  for (const spdlog::sink_ptr& sink : sinks) sink->set_level(*level);
  auto logger =
      std::make_shared<spdlog::logger>("", sinks.begin(), sinks.end());
  logger->set_formatter(
      std::make_unique<LineFormatter>(options.format, options.role));
  logger->sinks().push_back(std::make_shared<CountingSink>());
  // Warnings are counted even when the level hides them.
  logger->set_level(std::min(*level, spdlog::level::warn));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

void SetLogIndex(int64_t index) {
  g_index.store(index, std::memory_order_relaxed);
}

void SilenceLog() { spdlog::set_level(spdlog::level::off); }

void WriteLogMetrics(MetricsWriter* writer) {
  constexpr char kName[] = "tributary_log_messages_total";
  constexpr char kHelp[] = "Warnings and errors said.";
  writer->Counter(kName, kHelp, static_cast<double>(g_warnings.load()),
                  {{"level", "warning"}});
  writer->Counter(kName, kHelp, static_cast<double>(g_errors.load()),
                  {{"level", "error"}});
}

}  // namespace tributary
