// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job/last_scrape.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace tributary {
namespace {

// More readers than this are not Prometheus servers, and most have left.
constexpr size_t kMostReaders = 1000;

// Several Prometheus servers may read from one host; their connections tell
// them apart. A reader that states no interval is recognized when it comes
// again, and may then use another connection.
std::string NameOf(const PageReader& reader) {
  return reader.refresh > absl::ZeroDuration()
             ? absl::StrCat(reader.host, ":", reader.port)
             : absl::StrCat(reader.host, " ", reader.user_agent);
}

}  // namespace

void LastScrape::Reader::Read(int64_t stated, int64_t now, bool end) {
  stated_ = stated;
  if (last_ >= 0) {
    std::rotate(gaps_.begin(), gaps_.begin() + 1, gaps_.end());
    gaps_.back() = now - last_;
  }
  last_ = now;
  seen_ = seen_ || end;
}

int64_t LastScrape::Reader::Interval() const {
  return stated_ > 0 ? stated_ : *std::max_element(gaps_.begin(), gaps_.end());
}

bool LastScrape::Reader::Awaited(int64_t since, int64_t now) const {
  const int64_t interval = Interval();
  if (seen_ || interval == 0) return false;
  return since - last_ <= 2 * interval &&
         now < since + std::min(2 * interval, kLongestMicros);
}

void LastScrape::Page::Read(const PageReader& reader, int64_t now, bool end) {
  if (readers_.size() >= kMostReaders) {
    std::erase_if(readers_, [now](const auto& known) {
      return known.second.HasGone(now);
    });
  }
  const std::string name = NameOf(reader);
  if (readers_.size() >= kMostReaders && readers_.count(name) == 0) return;
  const int64_t stated = absl::ToInt64Microseconds(
      std::min(reader.refresh, absl::Microseconds(kLongestMicros)));
  readers_[name].Read(stated, now, end);
}

bool LastScrape::Page::Awaited(int64_t now) const {
  return since_ >= 0 &&
         std::any_of(readers_.begin(), readers_.end(), [&](const auto& known) {
           return known.second.Awaited(since_, now);
         });
}

void LastScrape::MetricsRead(const PageReader& reader, int64_t now_micros) {
  absl::MutexLock lock(&mu_);
  metrics_.Read(reader, now_micros, ended_);
  if (ended_ && !metrics_.Awaited(now_micros)) targets_.EndIsShown(now_micros);
}

bool LastScrape::TargetsRead(const PageReader& reader, int64_t now_micros) {
  absl::MutexLock lock(&mu_);
  const bool empty = ended_ && !metrics_.Awaited(now_micros);
  if (empty) targets_.EndIsShown(now_micros);
  targets_.Read(reader, now_micros, empty);
  return empty;
}

void LastScrape::End(bool failed, int64_t now_micros) {
  absl::MutexLock lock(&mu_);
  ended_ = true;
  if (failed) metrics_.EndIsShown(now_micros);
  if (!metrics_.Awaited(now_micros)) targets_.EndIsShown(now_micros);
}

bool LastScrape::Awaited(int64_t now_micros) const {
  absl::MutexLock lock(&mu_);
  return metrics_.Awaited(now_micros) || targets_.Awaited(now_micros);
}

}  // namespace tributary
