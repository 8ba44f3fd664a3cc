// SPDX-License-Identifier: Apache-2.0
// Compares every operation on the CUDA device with the CPU's, and measures the
// key operations. Prints a table; exit code 1 when a check fails.
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "tests/gpu/agreement.h"
#include "tests/gpu/device_checks.h"
#include "tests/gpu/nccl_checks.h"
#include "tests/gpu/speed.h"

namespace tributary::testing {
namespace {

constexpr char kUsage[] =
    "gpu_tests [--checks] [--speeds] [--host] [--quick] [--filter A|B]\n"
    "          [--tsv FILE]\n"
    "  --checks        compare and check, measure nothing\n"
    "  --speeds        measure alone\n"
    "  --host          measure the host's memory and copies to it alone\n"
    "  --lasting-fault check that a lost device is told, and nothing else\n"
    "  --quick         leave out large shapes, for a sanitizer\n"
    "  --filter A|B    only checks whose name holds A or B\n"
    "  --tsv FILE      also write what was found, a line each, with tabs\n";

struct Options {
  bool checks = true;
  bool speeds = true;
  bool host = false;
  bool quick = false;
  bool lasting_fault = false;
  std::vector<std::string> filter;
  std::string tsv;
};

bool ReadOptions(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--checks") {
      options->speeds = false;
    } else if (word == "--speeds") {
      options->checks = false;
    } else if (word == "--host") {
      options->host = true;
    } else if (word == "--quick") {
      options->quick = true;
    } else if (word == "--lasting-fault") {
      options->lasting_fault = true;
    } else if (word == "--filter" && more) {
      std::string names = argv[++i];
      for (char* name = std::strtok(names.data(), "|"); name != nullptr;
           name = std::strtok(nullptr, "|")) {
        options->filter.push_back(name);
      }
    } else if (word == "--tsv" && more) {
      options->tsv = argv[++i];
    } else {
      return false;
    }
  }
  return true;
}

// The table on the screen, and in a file for programs.
class Report {
 public:
  explicit Report(const std::string& tsv) {
    if (!tsv.empty()) file_ = std::fopen(tsv.c_str(), "w");
  }
  ~Report() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void AddCheck(const std::string& name, double error, double tolerance,
                bool ok, const std::string& why) {
    std::printf("%-40s %11.2e %11.0e  %s\n", name.c_str(), error, tolerance,
                ok ? "ok" : "FAILED");
    Explain(why);
    Write("check\t%s\t%.3e\t%.0e\t%s\n", name, error, tolerance, ok);
    Count(ok);
  }
  void AddCheck(const DeviceCheck& check) {
    const bool ok = check.error.empty();
    std::printf("%-40s %11s %11s  %s\n", check.name.c_str(), "", "",
                ok ? "ok" : "FAILED");
    Explain(check.error);
    Write("check\t%s\t%.0f\t%.0f\t%s\n", check.name, 0, 0, ok);
    Count(ok);
  }
  void AddSpeed(const Speed& speed) {
    std::printf("%-40s %9.1f", speed.name.c_str(), speed.achieved);
    if (speed.ceiling > 0) {
      std::printf(" %11.1f  %3.0f %%", speed.ceiling,
                  100 * speed.achieved / speed.ceiling);
    } else {
      std::printf(" %11s  %5s", "-", "");
    }
    std::printf("  %s\n", speed.unit.c_str());
    if (file_ != nullptr) {
      std::fprintf(file_, "speed\t%s\t%.3f\t%.3f\t%s\n", speed.name.c_str(),
                   speed.achieved, speed.ceiling, speed.unit.c_str());
    }
  }
  int failures() const { return failures_; }
  int checks() const { return checks_; }

 private:
  void Count(bool ok) {
    ++checks_;
    failures_ += ok ? 0 : 1;
  }
  static void Explain(const std::string& why) {
    if (!why.empty()) std::printf("    %s\n", why.c_str());
    std::fflush(stdout);
  }
  void Write(const char* format, const std::string& name, double a, double b,
             bool ok) {
    if (file_ == nullptr) return;
    std::fprintf(file_, format, name.c_str(), a, b, ok ? "ok" : "FAILED");
    std::fflush(file_);
  }

  std::FILE* file_ = nullptr;
  int checks_ = 0;
  int failures_ = 0;
};

bool Wanted(const Options& options, const std::string& name) {
  for (const std::string& part : options.filter) {
    if (name.find(part) != std::string::npos) return true;
  }
  return options.filter.empty();
}

// Runs a check on both devices.
void RunCheck(const AgreementCheck& check, const std::string& name,
              double tolerance, Ops& cpu, Ops& cuda, Report* report) {
  const Outputs expected = check.run(cpu);
  const Outputs got = check.run(cuda);
  const DeviceStatus status = cuda.Synchronize();
  const double error = status.ok() ? WorstError(expected, got)
                                   : std::numeric_limits<double>::infinity();
  report->AddCheck(name, error, tolerance, error <= tolerance,
                   status.message());
}

void RunAgreement(const Options& options, Ops& cuda, Ops* rounding_cuda,
                  Report* report) {
  std::vector<AgreementCheck> checks = AllAgreementChecks();
  if (!options.quick) {
    for (AgreementCheck& check : LargeAgreementChecks()) {
      checks.push_back(std::move(check));
    }
  }
  const std::unique_ptr<Ops> cpu = CreateCpuOps();
  const auto rounding_cpu = CreateCpuOps(ProductPrecision::kBfloat16);
  for (const AgreementCheck& check : checks) {
    if (!Wanted(options, check.name)) continue;
    RunCheck(check, check.name, check.tolerance, *cpu, cuda, report);
    if (!check.products || rounding_cuda == nullptr) continue;
    RunCheck(check, check.name + ", bfloat16", check.Bfloat16Tolerance(),
             *rounding_cpu, *rounding_cuda, report);
  }
}

void RunDeviceChecks(const Options& options, Ops& cuda, Report* report) {
  if (!options.quick && options.filter.empty()) {
    for (const DeviceCheck& check : CheckDevice(cuda)) report->AddCheck(check);
  }
  if (!Wanted(options, "nccl")) return;
  std::string why;
  const std::vector<DeviceCheck> checks = CheckNccl(cuda, &why);
  if (checks.empty()) std::printf("nccl: skipped: %s\n", why.c_str());
  for (const DeviceCheck& check : checks) report->AddCheck(check);
}

void PrintSpeeds(Ops& cuda, Ops* rounding, Report* report) {
  std::printf(
      "\nceilings, of this run: a large copy on the device, read and written; "
      "to and from\npinned host memory; cuBLAS's product of two 8192 x 8192 "
      "matrices\n\n%-40s %9s %11s  %s\n",
      "kernel", "achieved", "ceiling", "share");
  for (const Speed& speed : MeasureSpeeds(cuda, rounding)) {
    report->AddSpeed(speed);
  }
}

int Main(int argc, char** argv) {
  Options options;
  if (!ReadOptions(argc, argv, &options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  SetDeviceEnvironment();
  std::string why;
  const std::unique_ptr<Ops> cuda = CreateCudaOps(&why);
  if (cuda == nullptr) {
    std::printf("skipped: no device (%s)\n", why.c_str());
    return 0;
  }
  Report report(options.tsv);
  if (options.host) {
    for (const Speed& speed : MeasureHost()) report.AddSpeed(speed);
    return 0;
  }
  std::printf("%s against the CPU\n\n%-40s %11s %11s  %s\n",
              ArithmeticOf(*cuda).c_str(), "check", "worst error", "tolerance",
              "verdict");
  if (options.lasting_fault) {
    for (const DeviceCheck& check : CheckLastingFault(*cuda)) {
      report.AddCheck(check);
    }
    return report.failures() == 0 ? 0 : 1;
  }
  const auto rounding = CreateCudaOps(&why, 0, ProductPrecision::kBfloat16);
  if (options.checks) {
    RunAgreement(options, *cuda, rounding.get(), &report);
    RunDeviceChecks(options, *cuda, &report);
    std::printf("\n%s: %d checks, %d failed\n",
                report.failures() == 0 ? "all checks agree" : "CHECKS FAILED",
                report.checks(), report.failures());
  }
  if (options.speeds) PrintSpeeds(*cuda, rounding.get(), &report);
  return report.failures() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tributary::testing

int main(int argc, char** argv) { return tributary::testing::Main(argc, argv); }
