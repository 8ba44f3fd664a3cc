// Runs the deterministic simulator for a range of seeds.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"
#include "tests/simulation/job/scenario.h"
#include "tests/simulation/simulation.h"

namespace tributary::simulation {
namespace {

struct Options {
  std::optional<uint64_t> seed;
  std::string seeds;  // FROM..TO
  double minutes = 0;
  bool trace = false;
  int last = 60;
  int max_failures = 1;
};

// For the report when a failed check ends the process.
std::atomic<uint64_t> current_seed{0};

void SayWhichSeed(int signal) {
  char line[64];
  const int size = std::snprintf(
      line, sizeof(line), "seed %llu ends with signal %d\n",
      static_cast<unsigned long long>(current_seed.load()), signal);
  if (write(STDERR_FILENO, line, static_cast<size_t>(size)) < 0) _exit(3);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Repeats the seed and prints the events before the violation.
void Explain(const Scenario& scenario, const Outcome& outcome, int last) {
  std::printf("seed %llu FAILED: %s\n  %s\n",
              static_cast<unsigned long long>(scenario.seed),
              outcome.violation.c_str(), scenario.Text().c_str());
  std::deque<std::string> lines;
  const Outcome again = Simulate(scenario, [&](const std::string& line) {
    lines.push_back(line);
    if (static_cast<int>(lines.size()) > last) lines.pop_front();
  });
  std::printf("the last %zu events:\n", lines.size());
  for (const std::string& line : lines) std::printf("  %s\n", line.c_str());
  if (again.violation != outcome.violation || again.digest != outcome.digest) {
    std::printf("NOT DETERMINISTIC: run again it says: %s\n",
                again.violation.c_str());
  }
  std::printf("replay: simulate --seed %llu --trace\n\n",
              static_cast<unsigned long long>(scenario.seed));
}

int RunOne(uint64_t seed, bool trace) {
  const Scenario scenario = DrawScenario(seed);
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
              scenario.Text().c_str());
  const Outcome outcome = Simulate(
      scenario,
      trace ? [](const std::string& line) { std::printf("%s\n", line.c_str()); }
            : std::function<void(const std::string&)>());
  for (const auto& [fault, times] : outcome.faults) {
    std::printf("  %s: %lld\n", fault.c_str(), static_cast<long long>(times));
  }
  std::printf("%s; %lld events in %.3f simulated s, digest %016llx\n",
              outcome.violation.empty() ? outcome.end.c_str()
                                        : outcome.violation.c_str(),
              static_cast<long long>(outcome.events),
              static_cast<double>(outcome.micros) * 1e-6,
              static_cast<unsigned long long>(outcome.digest));
  std::printf("%d passed, %d failed\n", outcome.violation.empty() ? 1 : 0,
              outcome.violation.empty() ? 0 : 1);
  return outcome.violation.empty() ? 0 : 1;
}

int RunMany(uint64_t first, uint64_t end, const Options& options) {
  const double start = Now();
  const double until = options.minutes > 0 ? start + 60 * options.minutes : 0;
  FaultCounts faults;
  uint64_t seed = first;
  int64_t passed = 0, failed = 0, events = 0;
  double simulated = 0;
  for (; seed != end; ++seed) {
    if (until > 0 && Now() >= until) break;
    current_seed = seed;
    const Scenario scenario = DrawScenario(seed);
    const Outcome outcome = Simulate(scenario);
    events += outcome.events;
    simulated += static_cast<double>(outcome.micros) * 1e-6;
    for (const auto& [fault, times] : outcome.faults) faults[fault] += times;
    if (outcome.violation.empty()) {
      ++passed;
      continue;
    }
    Explain(scenario, outcome, options.last);
    if (++failed >= options.max_failures) {
      ++seed;
      break;
    }
  }
  for (const auto& [fault, times] : faults) {
    std::printf("  %-24s %lld\n", fault.c_str(), static_cast<long long>(times));
  }
  const double seconds = Now() - start;
  const double core = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  std::printf(
      "seeds %llu to %llu in %.1f s, %.1f of them on its core: %.0f seeds a "
      "minute of a core, %lld events, %.0f s simulated\n",
      static_cast<unsigned long long>(first),
      static_cast<unsigned long long>(seed) - 1, seconds, core,
      60 * static_cast<double>(seed - first) / core,
      static_cast<long long>(events), simulated);
  std::printf("%lld passed, %lld failed\n", static_cast<long long>(passed),
              static_cast<long long>(failed));
  return failed > 0 ? 1 : 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Simulates jobs with their troubles, one for each seed, and checks the "
      "invariants after each event");
  app.add_option("--seed", options.seed, "this seed alone");
  app.add_option("--seeds", options.seeds, "FROM..TO, both included");
  app.add_option(
      "--minutes", options.minutes,
      "fresh seeds, drawn from the time, or those of --seeds, for so "
      "long");
  app.add_flag("--trace", options.trace, "with --seed: every event");
  app.add_option("--last", options.last, "events shown of a seed that fails")
      ->capture_default_str();
  app.add_option("--max-failures", options.max_failures,
                 "end after so many seeds that fail")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::off);
  for (int signal : {SIGABRT, SIGSEGV, SIGFPE}) {
    std::signal(signal, SayWhichSeed);
  }
  if (options.seed) return RunOne(*options.seed, options.trace);
  uint64_t first = static_cast<uint64_t>(
      std::chrono::system_clock::now().time_since_epoch().count());
  uint64_t end = 0;
  if (!options.seeds.empty()) {
    unsigned long long from = 0, to = 0;
    if (std::sscanf(options.seeds.c_str(), "%llu..%llu", &from, &to) != 2) {
      std::fprintf(stderr, "--seeds wants FROM..TO, got %s\n",
                   options.seeds.c_str());
      return 2;
    }
    first = from;
    end = to + 1;
  } else if (options.minutes <= 0) {
    options.minutes = 1;
  }
  return RunMany(first, end, options);
}

}  // namespace
}  // namespace tributary::simulation

int main(int argc, char** argv) {
  return tributary::simulation::Main(argc, argv);
}
