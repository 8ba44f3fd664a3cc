// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/host/memory/peak_memory.h"

namespace tributary {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) * 1e-6;
}

// Reads the second number of statm, in pages (proc(5)). 0 when it is
// unavailable.
double ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  if (!(file >> size >> resident)) return 0;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double OpenFiles() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return 0;
  // Does not count the descriptor of the directory that is being read.
  return static_cast<double>(std::distance(begin(files), end(files)) - 1);
}

// Approximates the process's start, since it runs during static initialization.
double StartSeconds() {
  static const double start =
      std::chrono::duration<double>(
          std::chrono::system_clock::now().time_since_epoch())
          .count();
  return start;
}
const double kStart = StartSeconds();

}  // namespace

void WriteProcessMetrics(MetricsWriter* writer) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  writer->Counter("process_cpu_seconds_total", "User and system time.",
                  Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  writer->Gauge("process_start_time_seconds", "Start, in seconds since 1970.",
                kStart);
  const double resident = ResidentBytes();
  if (resident > 0) {
    writer->Gauge("process_resident_memory_bytes", "Resident memory now.",
                  resident);
  }
  // The kernel updates the peak only now and then, so it may be below the
  // present value.
  writer->Gauge("tributary_process_peak_memory_bytes",
                "Most resident memory so far.",
                std::max(resident, static_cast<double>(PeakMemoryBytes())));
  if (const double files = OpenFiles(); files > 0) {
    writer->Gauge("process_open_fds", "Open files and sockets.", files);
  }
}

}  // namespace tributary
