// SPDX-License-Identifier: Apache-2.0
// Measures the way from a worker to a server and back, over gRPC and through
// shared memory, without training, beside raw TCP in the same interleaved run
// (docs/benchmarks.md). Prints the median over all rounds of
//   GB/s         bytes pushed and pulled by all workers, divided by the slowest
//                worker's time
//   CPU-s/GB     processor time of all processes, divided by the same bytes
//   p50, p99     of one call with 4 bytes, in microseconds
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/push_pull/channels.h"
#include "common/command_line/parse_command_line.h"

namespace tributary::bench {
namespace {

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) +
                                    0.5)];
}

struct Rates {
  std::vector<double> gigabytes_per_second;  // one for each round
  std::vector<double> processor_seconds_per_gigabyte;
};

void AddRound(const Channel& channel, const Work& work, Rates* rates) {
  double slowest = 0;
  double processor_seconds = 0;
  for (const Measured& measured : Measure(channel, work)) {
    double seconds = 0;
    for (const double step : measured.step_seconds) seconds += step;
    slowest = std::max(slowest, seconds);
    processor_seconds += measured.processor_seconds;
  }
  const double gigabytes =
      1e-9 * 2.0 * static_cast<double>(work.bytes) * work.steps * work.workers;
  rates->gigabytes_per_second.push_back(gigabytes / slowest);
  rates->processor_seconds_per_gigabyte.push_back(processor_seconds /
                                                  gigabytes);
}

struct Shape {
  int workers;
  int servers;
};

struct Arguments {
  size_t megabytes = 64;
  int rounds = 5;
  int steps = 20;
  int pings = 3000;
  std::vector<std::string> shapes = {"1x1", "2x1", "2x2", "4x4"};
  std::vector<size_t> chunks_kib = {256, 512, 1024, 2048, 4096};
  int network_threads = 0;
  std::string alone;  // a channel's name; empty: all channels
};

// Every round measures these channels in this order. The first is the limit
// that the others are compared with.
std::vector<const Channel*> Channels(const Arguments& arguments) {
  if (arguments.alone == "grpc") return {&OverGrpc()};
  if (arguments.alone == "shared_memory") return {&OverSharedMemory()};
  return {&RawTcp(), &OverGrpc(), &OverSharedMemory()};
}

void PrintHeader(const std::vector<const Channel*>& channels) {
  std::string names = "| workers x servers | chunk ";
  std::string line = "| --- | --- ";
  for (size_t i = 0; i < channels.size(); ++i) {
    const std::string name = channels[i]->name();
    absl::StrAppend(&names, "| ", name, " GB/s ", i > 0 ? "| ratio " : "", "| ",
                    name, " CPU-s/GB ", i > 0 ? "| ratio " : "");
    absl::StrAppend(&line, i > 0 ? "| --- | --- | --- | --- " : "| --- | --- ");
  }
  std::printf("%s|\n%s|\n", names.c_str(), line.c_str());
}

void PrintRates(const Arguments& arguments, const std::vector<Shape>& shapes) {
  const std::vector<const Channel*> channels = Channels(arguments);
  std::map<std::string, std::vector<Rates>> rates;  // by row: each channel
  std::vector<std::string> rows;
  for (int round = 0; round < arguments.rounds; ++round) {
    for (const Shape& shape : shapes) {
      for (const size_t chunk : arguments.chunks_kib) {
        Work work;
        work.workers = shape.workers;
        work.servers = shape.servers;
        work.bytes = arguments.megabytes << 20;
        work.chunk = chunk << 10;
        work.steps = arguments.steps;
        work.network_threads = arguments.network_threads;
        const std::string row = absl::StrFormat(
            "| %dx%d | %d KiB ", shape.workers, shape.servers, chunk);
        if (round == 0) rows.push_back(row);
        rates[row].resize(channels.size());
        for (size_t i = 0; i < channels.size(); ++i) {
          AddRound(*channels[i], work, &rates[row][i]);
        }
      }
    }
  }
  PrintHeader(channels);
  for (const std::string& row : rows) {
    std::printf("%s", row.c_str());
    double limit[2] = {};
    for (size_t i = 0; i < channels.size(); ++i) {
      const double figures[] = {
          Quantile(rates[row][i].gigabytes_per_second, .5),
          Quantile(rates[row][i].processor_seconds_per_gigabyte, .5)};
      for (int f = 0; f < 2; ++f) {
        std::printf("| %.2f ", figures[f]);
        if (i == 0) {
          limit[f] = figures[f];
        } else {
          std::printf("| %.2f ", figures[f] / limit[f]);
        }
      }
    }
    std::printf("|\n");
  }
}

void PrintPings(const Arguments& arguments) {
  const std::vector<const Channel*> channels = Channels(arguments);
  Work work;
  work.bytes = 4;
  work.chunk = 4;
  work.steps = arguments.pings;
  work.warm_up = 200;
  std::vector<std::vector<double>> p50(channels.size());
  std::vector<std::vector<double>> p99(channels.size());
  for (int round = 0; round < arguments.rounds; ++round) {
    for (size_t i = 0; i < channels.size(); ++i) {
      const auto calls = Measure(*channels[i], work)[0].step_seconds;
      p50[i].push_back(1e6 * Quantile(calls, .5));
      p99[i].push_back(1e6 * Quantile(calls, .99));
    }
  }
  std::printf(
      "\n| 4 bytes | p50 us | ratio | p99 us | ratio |\n"
      "| --- | --- | --- | --- | --- |\n");
  for (size_t i = 0; i < channels.size(); ++i) {
    const double median = Quantile(p50[i], .5), tail = Quantile(p99[i], .5);
    std::printf("| %s | %.0f | %.2f | %.0f | %.2f |\n",
                channels[i]->name().c_str(), median,
                median / Quantile(p50[0], .5), tail,
                tail / Quantile(p99[0], .5));
  }
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CommandLine program("Push and pull over Tributary beside raw TCP",
                      "push_pull");
  program.AddOption("--megabytes", &arguments.megabytes,
                    "weights of each worker");
  program.AddOption("--rounds", &arguments.rounds, "interleaved rounds");
  program.AddOption("--steps", &arguments.steps, "measured steps in a round");
  program.AddOption("--pings", &arguments.pings,
                    "calls of 4 bytes in a round; 0");
  program.AddOption("--shapes", &arguments.shapes, "WORKERSxSERVERS")
      .Separator(',');
  program.AddOption("--chunks", &arguments.chunks_kib, "KiB of a block")
      .Separator(',');
  program.AddOption("--network-threads", &arguments.network_threads,
                    "of a worker; 0: as many as it takes by itself");
  program
      .AddOption("--alone", &arguments.alone,
                 "only this channel, for a profile; there are no ratios then")
      .OneOf({"grpc", "shared_memory"});
  if (const auto ended = ParseCommandLine(program, argc, argv)) {
    return *ended;
  }
  std::vector<Shape> shapes;
  for (const std::string& text : arguments.shapes) {
    Shape shape{};
    if (std::sscanf(text.c_str(), "%dx%d", &shape.workers, &shape.servers) !=
            2 ||
        shape.workers < 1 || shape.servers < 1) {
      std::fprintf(stderr, "--shapes: %s is not WORKERSxSERVERS\n",
                   text.c_str());
      return 2;
    }
    shapes.push_back(shape);
  }
  PrintRates(arguments, shapes);
  if (arguments.pings > 0) PrintPings(arguments);
  return 0;
}

}  // namespace
}  // namespace tributary::bench

int main(int argc, char** argv) { return tributary::bench::Main(argc, argv); }
