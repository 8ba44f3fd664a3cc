#include "coordinator/core/place.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status/utf8.h"

namespace tributary {
namespace {

constexpr size_t kMaxDeviceBytes = 256;
constexpr size_t kMaxSentenceBytes = 4096;

}  // namespace

std::string ShortSentence(absl::string_view text) {
  return std::string(CutUtf8(text, kMaxSentenceBytes));
}

MemberFigures MemberFigures::Of(const v1::HeartbeatRequest& heartbeat,
                                size_t num_workers) {
  const auto& ranks = heartbeat.waiting_for_ranks();
  const auto shown = std::min<std::ptrdiff_t>(
      ranks.size(), static_cast<std::ptrdiff_t>(num_workers));
  return {.waiting_for = ShortSentence(heartbeat.waiting_for()),
          .waiting_for_ranks = {ranks.begin(), ranks.begin() + shown},
          .device = std::string(CutUtf8(heartbeat.device(), kMaxDeviceBytes)),
          .bytes_sent = heartbeat.bytes_sent(),
          .bytes_received = heartbeat.bytes_received(),
          .peak_memory_bytes = heartbeat.peak_memory_bytes(),
          .optimizer_seconds = heartbeat.optimizer_seconds()};
}

std::string Place::ShortName() const {
  return absl::StrCat(role == v1::ROLE_SERVER ? "server" : "worker", " ",
                      index);
}

std::string Place::Name() const {
  return absl::StrCat(ShortName(), " (", holder.host(), ", pid ", holder.pid(),
                      ")");
}

}  // namespace tributary
