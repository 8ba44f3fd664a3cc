// Compares every operation on the CUDA device with the CPU's and measures the
// key ones. Prints a table; exit code 1 when a check fails.
#include <algorithm>
#include <cstdio>
#include <limits>

#include "kernels/device.h"
#include "tests/gpu/agreement.h"
#include "tests/gpu/speed.h"

namespace tributary::testing {
namespace {

// Runs a check on both devices and prints its line; true when they agree.
bool RunCheck(const AgreementCheck& check, Ops& cpu, Ops& cuda) {
  const Outputs expected = check.run(cpu);
  const Outputs got = check.run(cuda);
  const DeviceStatus status = cuda.Synchronize();
  const double error = status.ok() ? WorstError(expected, got)
                                   : std::numeric_limits<double>::infinity();
  const bool agrees = error <= check.tolerance;
  std::printf("%-30s %11.2e %11.0e  %s\n", check.name.c_str(), error,
              check.tolerance, agrees ? "ok" : "FAILED");
  if (!status.ok()) std::printf("    %s\n", status.message().c_str());
  return agrees;
}

void PrintSpeeds(Ops& cuda) {
  std::printf("\n%-30s %11s %11s  %s\n", "kernel", "achieved", "ceiling",
              "share");
  for (const Speed& speed : MeasureSpeeds(cuda)) {
    std::printf("%-30s %11.1f %11.1f  %3.0f %%  %s\n", speed.name.c_str(),
                speed.achieved, speed.ceiling,
                100 * speed.achieved / std::max(speed.ceiling, 1e-9),
                speed.unit.c_str());
  }
}

int Main() {
  std::string why;
  const std::unique_ptr<Ops> cuda = CreateCudaOps(&why);
  if (cuda == nullptr) {
    std::printf("skipped: no device (%s)\n", why.c_str());
    return 0;
  }
  const std::unique_ptr<Ops> cpu = CreateCpuOps();
  std::printf("%s against the CPU\n\n%-30s %11s %11s  %s\n",
              cuda->device_name(), "check", "worst error", "tolerance",
              "verdict");
  int failures = 0;
  for (const AgreementCheck& check : AllAgreementChecks()) {
    failures += RunCheck(check, *cpu, *cuda) ? 0 : 1;
  }
  PrintSpeeds(*cuda);
  std::printf("\n%s\n", failures == 0 ? "all checks agree" : "CHECKS FAILED");
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tributary::testing

int main() { return tributary::testing::Main(); }
