// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/worker_metrics.h"

#include <string>

namespace tributary {

void WorkerMetrics::CountStep(const v1::StepReport& report,
                              const Traffic& traffic) {
  step_seconds_.Observe(report.step_seconds());
  absl::MutexLock lock(&mu_);
  step_ = report.step();
  ++steps_;
  samples_ += report.samples();
  if (report.samples() > 0 && !report.no_loss()) {
    loss_ = report.loss_sum() / static_cast<double>(report.samples());
    has_loss_ = true;
  }
  AddSeconds(report, /*share=*/1, &seconds_);
  traffic_ = traffic;
}

void WorkerMetrics::Write(uint32_t rank, int num_shards, bool waiting,
                          MetricsWriter* writer) const {
  const MetricsWriter::Labels labels = {{"rank", std::to_string(rank)}};
  const auto counter = [&](const char* name, const char* help, auto value) {
    writer->Counter(name, help, static_cast<double>(value), labels);
  };
  const auto gauge = [&](const char* name, const char* help, auto value) {
    writer->Gauge(name, help, static_cast<double>(value), labels);
  };
  gauge("tributary_worker_waiting",
        "1 while a server has told whom this worker's step waits for.",
        waiting ? 1 : 0);
  for (int shard = 0; shard < num_shards; ++shard) {
    MetricsWriter::Labels with_shard = labels;
    with_shard.emplace_back("shard", std::to_string(shard));
    writer->Gauge("tributary_worker_waiting_for_shard",
                  "1 while the server of this shard does not answer.",
                  silent_shard_ == shard ? 1 : 0, with_shard);
  }
  gauge("tributary_worker_prefetched_batches",
        "Batches gathered and not taken yet, after the last step.",
        prefetched_.load());
  writer->Histogram("tributary_worker_step_duration_seconds", "Whole steps.",
                    step_seconds_.Snapshot(), labels);
  absl::MutexLock lock(&mu_);
  gauge("tributary_worker_step", "The last step finished.", step_);
  counter("tributary_worker_steps_total", "Steps finished by this process.",
          steps_);
  counter("tributary_worker_samples_total", "Samples trained by this process.",
          samples_);
  if (has_loss_) {
    gauge("tributary_worker_loss",
          "Mean loss over this rank's samples of the last step.", loss_);
  }
  counter("tributary_worker_sent_bytes_total", "Payloads to servers.",
          traffic_.bytes_sent);
  counter("tributary_worker_received_bytes_total", "Payloads from servers.",
          traffic_.bytes_received);
  counter("tributary_worker_retries_total", "Calls made again.",
          traffic_.retries);
  for (const StepSecondsField& field : kStepSeconds) {
    // Only the parts that add up to the step.
    if (field.seconds == &StepSeconds::step) continue;
    if (field.seconds == &StepSeconds::optimizer) continue;
    MetricsWriter::Labels with_part = labels;
    with_part.emplace_back("part", field.name);
    writer->Counter("tributary_worker_step_part_seconds_total",
                    "Where the time of the steps went.",
                    seconds_.*field.seconds, with_part);
  }
}

}  // namespace tributary
