// Measures the way from a worker through gRPC to a server and back, without
// training, beside raw TCP in the same interleaved run (docs/benchmarks.md).
// Prints the median over all rounds of
//   GB/s         bytes pushed and pulled by all workers / the slowest worker's
//   time CPU-s/GB     processor time of all processes / the same bytes p50, p99
//   of one call with 4 bytes, in microseconds
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/push_pull/transports.h"

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

void AddRound(const Transport& transport, const Work& work, Rates* rates) {
  double slowest = 0;
  double processor_seconds = 0;
  for (const Measured& measured : Measure(transport, work)) {
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
  bool alone = false;
};

void PrintRates(const Arguments& arguments, const std::vector<Shape>& shapes) {
  std::map<std::string, std::vector<Rates>> rates;  // by row: raw, Tributary
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
        const std::string row = absl::StrFormat(
            "| %dx%d | %d KiB ", shape.workers, shape.servers, chunk);
        if (round == 0) rows.push_back(row);
        auto& both = rates[row];
        both.resize(2);
        AddRound(arguments.alone ? Tributary() : RawTcp(), work, &both[0]);
        if (arguments.alone) {
          both[1] = both[0];
        } else {
          AddRound(Tributary(), work, &both[1]);
        }
      }
    }
  }
  std::printf(
      "| workers x servers | chunk | raw TCP GB/s | Tributary GB/s | ratio | "
      "raw TCP CPU-s/GB | Tributary CPU-s/GB | ratio |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const std::string& row : rows) {
    const Rates& raw = rates[row][0];
    const Rates& ours = rates[row][1];
    const double raw_rate = Quantile(raw.gigabytes_per_second, .5);
    const double our_rate = Quantile(ours.gigabytes_per_second, .5);
    const double raw_cost = Quantile(raw.processor_seconds_per_gigabyte, .5);
    const double our_cost = Quantile(ours.processor_seconds_per_gigabyte, .5);
    std::printf("%s| %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", row.c_str(),
                raw_rate, our_rate, our_rate / raw_rate, raw_cost, our_cost,
                our_cost / raw_cost);
  }
}

void PrintPings(const Arguments& arguments) {
  Work work;
  work.bytes = 4;
  work.chunk = 4;
  work.steps = arguments.pings;
  work.warm_up = 200;
  std::vector<double> p50[2];
  std::vector<double> p99[2];
  for (int round = 0; round < arguments.rounds; ++round) {
    for (int i = 0; i < 2; ++i) {
      const auto calls =
          Measure(i == 0 ? RawTcp() : Tributary(), work)[0].step_seconds;
      p50[i].push_back(1e6 * Quantile(calls, .5));
      p99[i].push_back(1e6 * Quantile(calls, .99));
    }
  }
  std::printf("\n| 4 bytes | p50 us | p99 us |\n| --- | --- | --- |\n");
  for (int i = 0; i < 2; ++i) {
    std::printf("| %s | %.0f | %.0f |\n",
                (i == 0 ? RawTcp() : Tributary()).name().c_str(),
                Quantile(p50[i], .5), Quantile(p99[i], .5));
  }
  std::printf("| ratio | %.2f | %.2f |\n",
              Quantile(p50[1], .5) / Quantile(p50[0], .5),
              Quantile(p99[1], .5) / Quantile(p99[0], .5));
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Push and pull over Tributary beside raw TCP"};
  app.add_option("--megabytes", arguments.megabytes, "weights of each worker");
  app.add_option("--rounds", arguments.rounds, "interleaved rounds");
  app.add_option("--steps", arguments.steps, "measured steps in a round");
  app.add_option("--pings", arguments.pings, "calls of 4 bytes in a round; 0");
  app.add_option("--shapes", arguments.shapes, "WORKERSxSERVERS")
      ->delimiter(',');
  app.add_option("--chunks", arguments.chunks_kib, "KiB of a block")
      ->delimiter(',');
  app.add_flag("--alone", arguments.alone,
               "without raw TCP, for a profile; the ratios are then 1");
  CLI11_PARSE(app, argc, argv);
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
