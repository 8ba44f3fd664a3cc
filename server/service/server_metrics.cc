// SPDX-License-Identifier: Apache-2.0
#include "server/service/server_metrics.h"

#include <string>

#include "server/store/shard_counters.h"

namespace tributary {
namespace {

// Adds the shard's label to every series.
class ShardWriter {
 public:
  ShardWriter(MetricsWriter* writer, uint32_t shard)
      : writer_(writer), labels_{{"shard", std::to_string(shard)}} {}

  template <typename Number>
  void Counter(const char* name, const char* help, Number value) {
    writer_->Counter(name, help, static_cast<double>(value), labels_);
  }
  template <typename Number>
  void Gauge(const char* name, const char* help, Number value) {
    writer_->Gauge(name, help, static_cast<double>(value), labels_);
  }
  MetricsWriter::Labels With(const char* label, const std::string& value) {
    MetricsWriter::Labels labels = labels_;
    labels.emplace_back(label, value);
    return labels;
  }
  const MetricsWriter::Labels& labels() const { return labels_; }

 private:
  MetricsWriter* const writer_;
  const MetricsWriter::Labels labels_;
};

HistogramSnapshot Staleness(const v1::ServerStatusResponse& status) {
  HistogramSnapshot snapshot;
  snapshot.sum = static_cast<double>(status.staleness_sum());
  for (int i = 0; i < status.staleness_size(); ++i) {
    snapshot.count += status.staleness(i);
    if (i < static_cast<int>(kStalenessBounds.size())) {
      snapshot.buckets.push_back(
          {static_cast<double>(kStalenessBounds[i]), snapshot.count});
    }
  }
  return snapshot;
}

}  // namespace

void WriteServerMetrics(const v1::ServerStatusResponse& status,
                        const RankWaits& waits, MetricsWriter* writer) {
  ShardWriter shard(writer, status.shard());
  shard.Gauge("tributary_server_min_version",
              "Updates applied to every block; falls at a rollback.",
              status.min_version());
  shard.Gauge("tributary_server_max_version",
              "Updates applied to the foremost block.", status.max_version());
  shard.Counter("tributary_server_contributions_total",
                "Gradients of a block, taken and counted once.",
                status.contributions());
  shard.Counter("tributary_server_duplicates_total",
                "The same again: answered, not counted.", status.duplicates());
  shard.Counter("tributary_server_conflicts_total",
                "The same identity with other bytes: refused.",
                status.conflicts());
  for (const auto& [reason, count] : status.rejections()) {
    writer->Counter("tributary_server_rejected_total",
                    "Refused messages, by reason.", static_cast<double>(count),
                    shard.With("reason", reason));
  }
  shard.Counter("tributary_server_dropped_total",
                "Late ones that backup workers made superfluous.",
                status.dropped());
  shard.Counter("tributary_server_nonfinite_gradients_total",
                "Contributions with NaN or infinity.", status.nonfinite());
  shard.Counter("tributary_server_skipped_blocks_total",
                "Blocks whose step changed nothing because of such.",
                status.skipped_blocks());
  writer->Histogram("tributary_server_pull_staleness_steps",
                    "Steps by which the slowest worker was behind the one "
                    "that read weights.",
                    Staleness(status), shard.labels());
  if (status.has_staleness_bound()) {
    shard.Gauge("tributary_server_staleness_bound_steps",
                "The most that the policy allows.", status.staleness_bound());
  }
  shard.Gauge("tributary_server_waiting_calls",
              "Calls that are held until their step is complete.",
              status.waiting_calls());
  shard.Gauge("tributary_server_shared_memory_workers",
              "Workers on this machine that share memory with the server.",
              status.shared_memory_workers());
  shard.Gauge("tributary_server_held_bytes",
              "Contributions of steps that are not applied yet.",
              status.held_bytes());
  shard.Gauge("tributary_server_unread_bytes",
              "Weights that were sent and that workers have not read yet.",
              status.unread_bytes());
  shard.Counter("tributary_server_received_bytes_total",
                "Payloads from workers.", status.bytes_received());
  shard.Counter("tributary_server_sent_bytes_total", "Payloads to workers.",
                status.bytes_sent());
  for (int rank = 0; rank < waits.num_workers(); ++rank) {
    const MetricsWriter::Labels labels =
        shard.With("rank", std::to_string(rank));
    writer->Counter("tributary_server_straggler_wait_seconds_total",
                    "Seconds that steps waited for this rank while at least "
                    "half of the ranks had come.",
                    waits.seconds(rank), labels);
    writer->Gauge("tributary_server_waiting_for_rank",
                  "1 while an open step waits for this rank.",
                  waits.waiting(rank) ? 1 : 0, labels);
  }
}

}  // namespace tributary
