// SPDX-License-Identifier: Apache-2.0
// The only source that includes prometheus-cpp.
#include "common/telemetry/metrics_writer.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <map>

namespace tributary {

struct MetricsWriter::Families {
  std::vector<prometheus::MetricFamily> families;  // in order of appearance
  std::map<std::string, size_t> index;

  prometheus::ClientMetric& Add(absl::string_view name, absl::string_view help,
                                prometheus::MetricType type,
                                const Labels& labels) {
    const auto [it, is_new] =
        index.try_emplace(std::string(name), families.size());
    if (is_new) {
      families.push_back({std::string(name), std::string(help), type, {}});
    }
    std::vector<prometheus::ClientMetric>& series = families[it->second].metric;
    series.emplace_back();
    for (const auto& [label, value] : labels) {
      series.back().label.push_back({label, value});
    }
    return series.back();
  }
};

MetricsWriter::MetricsWriter() : families_(std::make_unique<Families>()) {}
MetricsWriter::~MetricsWriter() = default;

void MetricsWriter::Counter(absl::string_view name, absl::string_view help,
                            double value, const Labels& labels) {
  families_->Add(name, help, prometheus::MetricType::Counter, labels)
      .counter.value = value;
}

void MetricsWriter::Gauge(absl::string_view name, absl::string_view help,
                          double value, const Labels& labels) {
  families_->Add(name, help, prometheus::MetricType::Gauge, labels)
      .gauge.value = value;
}

void MetricsWriter::Histogram(absl::string_view name, absl::string_view help,
                              const HistogramSnapshot& snapshot,
                              const Labels& labels) {
  prometheus::ClientMetric::Histogram& histogram =
      families_->Add(name, help, prometheus::MetricType::Histogram, labels)
          .histogram;
  histogram.sample_count = snapshot.count;
  histogram.sample_sum = snapshot.sum;
  for (const HistogramSnapshot::Bucket& bucket : snapshot.buckets) {
    histogram.bucket.push_back({bucket.cumulative_count, bucket.upper_bound});
  }
}

std::string MetricsWriter::Text() const {
  return prometheus::TextSerializer().Serialize(families_->families);
}

}  // namespace tributary
