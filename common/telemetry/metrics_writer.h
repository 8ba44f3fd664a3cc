#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/telemetry/histogram.h"

namespace tributary {

// A page of metrics in the making. Whoever has some writes them when they are
// asked for; nothing is kept between two scrapes. Series of one name may come
// in any order and from several writers. docs/operations.md lists every name.
class MetricsWriter {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  MetricsWriter();
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // Only ever grows while the process lives; the name ends in _total.
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
  struct Families;  // the only place that knows the library's types
  const std::unique_ptr<Families> families_;
};

}  // namespace tributary
