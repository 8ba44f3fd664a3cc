// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tributary::testing {

// A tensor of a golden group: an input, an expected output in float64, or the
// scale of an expected output.
struct GoldenTensor {
  std::string role;
  std::string dtype;  // f32, f64, i64, u8
  std::string scale;  // name of the scale tensor, or empty
  std::vector<int64_t> shape;
  std::vector<char> bytes;
  double tolerance = 0;

  int64_t size() const;
  std::vector<double> Doubles() const;
  std::vector<float> Floats() const;
  std::vector<int64_t> Integers() const;
};

// One case: its attributes as JSON text and its tensors by name.
class GoldenCase {
 public:
  std::map<std::string, std::string> attributes;
  std::map<std::string, GoldenTensor> tensors;

  bool Has(const std::string& name) const { return tensors.count(name) > 0; }
  // Ends the test program if the tensor is missing.
  const GoldenTensor& Tensor(const std::string& name) const;

  // The attribute's text without quotes, or `otherwise` when it is absent or
  // null.
  std::string Text(const std::string& key, const std::string& otherwise) const;
  double Number(const std::string& key, double otherwise) const;
  bool Flag(const std::string& key) const;
  // A list of numbers like [0.9, 0.999]; empty when absent or null.
  std::vector<double> Numbers(const std::string& key) const;

  // The largest |got - expected| divided by its tolerance; `got` passes if it
  // is at most 1. Infinity when a value is not finite or the sizes differ.
  // Errors are relative to the largest expected magnitude, or per coordinate to
  // the scale tensor. The scale tensor repeats over the leading axes; a scale
  // of 0 demands equality.
  double ErrorOverTolerance(const std::string& name,
                            const std::vector<float>& got) const;
  double ErrorOverTolerance(const std::string& name,
                            const std::vector<double>& got) const;
};

// Reads tests/golden/<group>.tsv and .bin, cases in alphabetical order; ends
// the test program when it cannot.
std::map<std::string, GoldenCase> ReadGoldenGroup(const std::string& group);

}  // namespace tributary::testing
