// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tributary {
class Ops;
}

namespace tributary::testing {

// The results of an operation: one or more arrays.
using Outputs = std::vector<std::vector<double>>;

// One operation on fixed inputs, for any device. It needs only the standard
// library, so that a machine with only CUDA and CMake can run it.
struct AgreementCheck {
  std::string name;
  // The largest allowed difference, relative to the largest magnitude in the
  // array. 0 demands equal bits, which one-element formulas and sums in a fixed
  // order give on every device. BLAS products and sums over rows do not.
  double tolerance;
  std::function<Outputs(Ops&)> run;
  // Uses BLAS products, whose summation order is unknown.
  bool products = false;
  // Multiplies operands that are sums themselves. With bfloat16 operands, two
  // devices may round such sums to neighbouring values.
  bool rounds_sums = false;

  // The tolerance with bfloat16 operands on both devices.
  double Bfloat16Tolerance() const { return rounds_sums ? 1e-2 : tolerance; }
};

// At least one check for every method of Ops.
std::vector<AgreementCheck> AllAgreementChecks();
// Checks with the shapes of real models, for which the code takes other paths
// than for small shapes; too slow for the unit tests' builds.
std::vector<AgreementCheck> LargeAgreementChecks();

// The largest difference, relative as above; infinity when shapes differ or
// exactly one of two values is a NaN.
double WorstError(const Outputs& reference, const Outputs& candidate);

// The outputs of every check on the CPU. Used to compare with a second build of
// the kernels, in another namespace and for the most basic processor.
std::vector<std::pair<std::string, Outputs>> CpuOutputs();

}  // namespace tributary::testing
