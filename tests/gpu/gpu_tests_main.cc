// Compares every operation on the CUDA device with the CPU's and measures the
// key ones. Prints a table; exit code 1 when a check fails.
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "tests/gpu/agreement.h"
#include "tests/gpu/nccl_checks.h"
#include "tests/gpu/speed.h"

namespace tributary::testing {
namespace {

// Runs a check on both devices and prints its line; true when they agree.
bool RunCheck(const AgreementCheck& check, const std::string& name,
              double tolerance, Ops& cpu, Ops& cuda) {
  const Outputs expected = check.run(cpu);
  const Outputs got = check.run(cuda);
  const DeviceStatus status = cuda.Synchronize();
  const double error = status.ok() ? WorstError(expected, got)
                                   : std::numeric_limits<double>::infinity();
  const bool agrees = error <= tolerance;
  std::printf("%-30s %11.2e %11.0e  %s\n", name.c_str(), error, tolerance,
              agrees ? "ok" : "FAILED");
  if (!status.ok()) std::printf("    %s\n", status.message().c_str());
  return agrees;
}

void PrintSpeeds(Ops& cuda) {
  std::printf(
      "\nceilings, of this run: a large copy on the device, read and written; "
      "to and from\npinned host memory; cuBLAS's product of two 8192 x 8192 "
      "matrices\n\n%-32s %9s %11s  %s\n",
      "kernel", "achieved", "ceiling", "share");
  for (const Speed& speed : MeasureSpeeds(cuda)) {
    std::printf("%-32s %9.1f", speed.name.c_str(), speed.achieved);
    if (speed.ceiling > 0) {
      std::printf(" %11.1f  %3.0f %%", speed.ceiling,
                  100 * speed.achieved / speed.ceiling);
    } else {
      std::printf(" %11s  %5s", "-", "");
    }
    std::printf("  %s\n", speed.unit.c_str());
  }
}

// One rank over NCCL; the number of checks that fail.
int RunNcclChecks(Ops& cuda) {
  std::string why;
  const std::vector<NcclCheck> checks = CheckNccl(cuda, &why);
  if (checks.empty()) std::printf("nccl: skipped: %s\n", why.c_str());
  int failures = 0;
  for (const NcclCheck& check : checks) {
    const bool ok = check.error.empty();
    failures += ok ? 0 : 1;
    std::printf("%-30s %11s %11s  %s\n", check.name.c_str(), "", "",
                ok ? "ok" : "FAILED");
    if (!ok) std::printf("    %s\n", check.error.c_str());
  }
  return failures;
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
    failures +=
        RunCheck(check, check.name, check.tolerance, *cpu, *cuda) ? 0 : 1;
  }
  const auto rounding_cpu = CreateCpuOps(ProductPrecision::kBfloat16);
  const auto rounding_cuda =
      CreateCudaOps(&why, 0, ProductPrecision::kBfloat16);
  for (const AgreementCheck& check : AllAgreementChecks()) {
    if (!check.products || rounding_cuda == nullptr) continue;
    failures +=
        RunCheck(check, check.name + " in bfloat16", check.Bfloat16Tolerance(),
                 *rounding_cpu, *rounding_cuda)
            ? 0
            : 1;
  }
  failures += RunNcclChecks(*cuda);
  std::printf("\n%s\n", failures == 0 ? "all checks agree" : "CHECKS FAILED");
  PrintSpeeds(*cuda);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tributary::testing

int main() { return tributary::testing::Main(); }
