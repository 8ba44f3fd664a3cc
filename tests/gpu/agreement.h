#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tributary {
class Ops;
}

namespace tributary::testing {

// What an operation gave, several arrays one after the other.
using Outputs = std::vector<std::vector<double>>;

// One operation on fixed inputs, for any device. Needs the standard library
// alone, so that a machine with only CUDA and CMake can run it.
struct AgreementCheck {
  std::string name;
  // The largest difference allowed, relative to the largest magnitude of the
  // array. 0: the same bits, which one-element formulas and sums in a fixed
  // order give on every device; products by a BLAS and sums over rows don't.
  double tolerance;
  std::function<Outputs(Ops&)> run;
  // Made of products by a BLAS, which has orders of its own.
  bool products = false;
  // Of products whose operands are sums themselves: those of two devices may
  // round to neighbours where operands are bfloat16.
  bool rounds_sums = false;

  // With operands of products in bfloat16 on both devices.
  double Bfloat16Tolerance() const { return rounds_sums ? 1e-2 : tolerance; }
};

// At least one check for every method of Ops.
std::vector<AgreementCheck> AllAgreementChecks();
// Shapes as real models have them, where code takes other ways than in small
// ones: too slow for the unit tests' builds.
std::vector<AgreementCheck> LargeAgreementChecks();

// The worst difference, relative as above; infinity when shapes differ or only
// one of two numbers is a NaN.
double WorstError(const Outputs& reference, const Outputs& candidate);

// The outputs of every check on the CPU. A second build of the kernels, under
// another namespace and for the plainest processor, is compared through this.
std::vector<std::pair<std::string, Outputs>> CpuOutputs();

}  // namespace tributary::testing
