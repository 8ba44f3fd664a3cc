// SPDX-License-Identifier: Apache-2.0
// Runs the deterministic simulator for a range of seeds.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "common/base/mutation.h"
#include "common/command_line/parse_command_line.h"
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

// SayWhichSeed reports it when a failed check ends the process.
std::atomic<uint64_t> current_seed{0};

void SayWhichSeed(int signal) {
  char line[64];
  const int size =
      absl::SNPrintF(line, sizeof(line), "seed %d ends with signal %d\n",
                     current_seed.load(), signal);
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
  absl::PrintF("seed %d FAILED: %s\n  %s\n", scenario.seed, outcome.violation,
               scenario.Text());
  std::deque<std::string> lines;
  const Outcome again = Simulate(scenario, [&](const std::string& line) {
    lines.push_back(line);
    if (static_cast<int>(lines.size()) > last) lines.pop_front();
  });
  absl::PrintF("the last %d events:\n", lines.size());
  for (const std::string& line : lines) absl::PrintF("  %s\n", line);
  if (again.violation != outcome.violation || again.digest != outcome.digest) {
    absl::PrintF("NOT DETERMINISTIC: run again it says: %s\n", again.violation);
  }
  absl::PrintF("replay: simulate --seed %d --trace\n\n", scenario.seed);
}

int Summarize(const FaultCounts& faults, int64_t passed, int64_t failed) {
  for (const auto& [fault, times] : faults) {
    absl::PrintF("  %-24s %d\n", fault, times);
  }
  absl::PrintF("%d passed, %d failed\n", passed, failed);
  return failed > 0 ? 1 : 0;
}

int RunOne(uint64_t seed, bool trace) {
  const Scenario scenario = DrawScenario(seed);
  absl::PrintF("seed %d: %s\n", seed, scenario.Text());
  std::function<void(const std::string&)> print;
  if (trace) print = [](const std::string& s) { absl::PrintF("%s\n", s); };
  const Outcome outcome = Simulate(scenario, print);
  const bool passed = outcome.violation.empty();
  absl::PrintF("%s; %d events in %.3f simulated s, digest %016x\n",
               passed ? outcome.end : outcome.violation, outcome.events,
               static_cast<double>(outcome.micros) * 1e-6, outcome.digest);
  return Summarize(outcome.faults, passed ? 1 : 0, passed ? 0 : 1);
}

int RunMany(uint64_t first, uint64_t end, const Options& options) {
  const double start = Now();
  const double until = options.minutes > 0 ? start + 60 * options.minutes : 0;
  FaultCounts faults;
  uint64_t seed = first;
  int64_t failed = 0, events = 0, micros = 0;
  while (seed != end && failed < options.max_failures &&
         (until == 0 || Now() < until)) {
    current_seed = seed;
    const Scenario scenario = DrawScenario(seed++);
    const Outcome outcome = Simulate(scenario);
    events += outcome.events;
    micros += outcome.micros;
    for (const auto& [fault, times] : outcome.faults) faults[fault] += times;
    if (outcome.violation.empty()) continue;
    Explain(scenario, outcome, options.last);
    ++failed;
  }
  const auto seeds = static_cast<int64_t>(seed - first);
  const double core = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  absl::PrintF(
      "seeds %d to %d in %.1f s, %.1f of them on its core: %.0f seeds a minute "
      "of a core, %d events, %.0f s simulated\n",
      first, seed - 1, Now() - start, core,
      60 * static_cast<double>(seeds) / core, events,
      static_cast<double>(micros) * 1e-6);
  return Summarize(faults, seeds - failed, failed);
}

int Main(int argc, char** argv) {
  Options options;
  CommandLine program(
      "Simulates jobs with their troubles, one for each seed, and checks the "
      "invariants after each event",
      "simulate");
  program.AddOption("--seed", &options.seed, "this seed alone");
  program.AddOption("--seeds", &options.seeds, "FROM..TO, both included");
  program.AddOption(
      "--minutes", &options.minutes,
      "fresh seeds, drawn from the time, or those of --seeds, for so "
      "long");
  program.AddFlag("--trace", &options.trace, "with --seed: every event");
  program
      .AddOption("--last", &options.last, "events shown of a seed that fails")
      .ShowDefault();
  program
      .AddOption("--max-failures", &options.max_failures,
                 "end after so many seeds that fail")
      .ShowDefault();
  if (const auto ended = ParseCommandLine(program, argc, argv)) {
    return *ended;
  }
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
  if (const char* planted = std::getenv("TRIBUTARY_MUTATION")) {
    tributary::mutation::planted = planted;
  }
  return tributary::simulation::Main(argc, argv);
}
