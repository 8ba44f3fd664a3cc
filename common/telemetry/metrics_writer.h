// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/telemetry/histogram.h"

namespace tributary {

// Collects the metrics of one scrape; nothing is kept between scrapes. Every
// source writes its metrics here when it is asked. Series of one name may come
// in any order and from several sources. docs/monitoring.md lists all names.
class MetricsWriter {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  MetricsWriter();
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // A counter must never decrease while the process lives, and its name must
  // end in _total.
  void Counter(absl::string_view name, absl::string_view help, double value,
               const Labels& labels = {});
  void Gauge(absl::string_view name, absl::string_view help, double value,
             const Labels& labels = {});
  void Histogram(absl::string_view name, absl::string_view help,
                 const HistogramSnapshot& snapshot, const Labels& labels = {});

  // The page in Prometheus's text format, version 0.0.4.
  std::string Text() const;
  static constexpr char kContentType[] =
      "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Families;  // keeps the library's types out of this header
  const std::unique_ptr<Families> families_;
};

}  // namespace tributary
