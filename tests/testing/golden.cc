// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/golden.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "tests/testing/paths.h"

namespace tributary::testing {
namespace {

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "golden: %s\n", message.c_str());
  std::abort();
}

template <typename To, typename From>
std::vector<To> Convert(const std::vector<char>& bytes) {
  std::vector<From> values(bytes.size() / sizeof(From));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return std::vector<To>(values.begin(), values.end());
}

template <typename To>
std::vector<To> As(const GoldenTensor& tensor) {
  if (tensor.dtype == "f32") return Convert<To, float>(tensor.bytes);
  if (tensor.dtype == "f64") return Convert<To, double>(tensor.bytes);
  if (tensor.dtype == "i64") return Convert<To, int64_t>(tensor.bytes);
  if (tensor.dtype == "u8") return Convert<To, uint8_t>(tensor.bytes);
  Die("unknown dtype " + tensor.dtype);
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> fields;
  std::stringstream stream(text);
  for (std::string field; std::getline(stream, field, separator);) {
    fields.push_back(field);
  }
  return fields;
}

// Parses a line `T case tensor role dtype shape offset nbytes tolerance scale`.
GoldenTensor ParseTensor(const std::vector<std::string>& fields,
                         const std::string& data) {
  GoldenTensor tensor;
  tensor.role = fields[3];
  tensor.dtype = fields[4];
  if (fields[5] != "-") {
    for (const std::string& extent : Split(fields[5], ',')) {
      tensor.shape.push_back(std::stoll(extent));
    }
  }
  const size_t offset = std::stoull(fields[6]);
  const size_t size = std::stoull(fields[7]);
  if (offset > data.size() || size > data.size() - offset) {
    Die("tensor " + fields[2] + " ends beyond its file");
  }
  tensor.bytes.assign(data.begin() + static_cast<int64_t>(offset),
                      data.begin() + static_cast<int64_t>(offset + size));
  if (fields[8] != "-") tensor.tolerance = std::stod(fields[8]);
  if (fields[9] != "-") tensor.scale = fields[9];
  return tensor;
}

double LargestMagnitude(const std::vector<double>& values) {
  double largest = 0;
  for (double value : values) largest = std::max(largest, std::fabs(value));
  return largest > 0 ? largest : 1;
}

}  // namespace

int64_t GoldenTensor::size() const {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

std::vector<double> GoldenTensor::Doubles() const { return As<double>(*this); }
std::vector<float> GoldenTensor::Floats() const { return As<float>(*this); }
std::vector<int64_t> GoldenTensor::Integers() const {
  return As<int64_t>(*this);
}

const GoldenTensor& GoldenCase::Tensor(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) Die("no tensor " + name);
  return found->second;
}

std::string GoldenCase::Text(const std::string& key,
                             const std::string& otherwise) const {
  const auto found = attributes.find(key);
  if (found == attributes.end() || found->second == "null") return otherwise;
  std::string text = found->second;
  text.erase(std::remove(text.begin(), text.end(), '"'), text.end());
  return text;
}

double GoldenCase::Number(const std::string& key, double otherwise) const {
  const std::string text = Text(key, "");
  return text.empty() ? otherwise : std::stod(text);
}

bool GoldenCase::Flag(const std::string& key) const {
  return Text(key, "false") == "true";
}

std::vector<double> GoldenCase::Numbers(const std::string& key) const {
  std::vector<double> numbers;
  std::string text = Text(key, "[]");
  text = text.substr(1, text.size() - 2);
  for (const std::string& number : Split(text, ',')) {
    numbers.push_back(std::stod(number));
  }
  return numbers;
}

double GoldenCase::ErrorOverTolerance(const std::string& name,
                                      const std::vector<float>& got) const {
  return ErrorOverTolerance(name, std::vector<double>(got.begin(), got.end()));
}

double GoldenCase::ErrorOverTolerance(const std::string& name,
                                      const std::vector<double>& got) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const GoldenTensor& tensor = Tensor(name);
  const std::vector<double> expected = tensor.Doubles();
  if (got.size() != expected.size()) return kInfinity;
  std::vector<double> scale = {LargestMagnitude(expected)};
  if (!tensor.scale.empty()) scale = Tensor(tensor.scale).Doubles();
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::fabs(got[i] - expected[i]);
    if (error == 0) continue;
    const double s = scale[i % scale.size()];
    if (std::isnan(error) || s <= 0) return kInfinity;
    worst = std::max(worst, error / s);
  }
  return worst / tensor.tolerance;
}

std::map<std::string, GoldenCase> ReadGoldenGroup(const std::string& group) {
  const std::string prefix = SourceFile("tests/golden/" + group);
  std::ifstream data_file(prefix + ".bin", std::ios::binary);
  std::ifstream index(prefix + ".tsv");
  if (!data_file || !index) Die("cannot open " + prefix + ".bin and .tsv");
  const std::string data((std::istreambuf_iterator<char>(data_file)), {});
  std::map<std::string, GoldenCase> cases;
  for (std::string line; std::getline(index, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> fields = Split(line, '\t');
    if (fields[0] == "A") {
      cases[fields[1]].attributes[fields[2]] = fields[3];
    } else {
      cases[fields[1]].tensors[fields[2]] = ParseTensor(fields, data);
    }
  }
  return cases;
}

}  // namespace tributary::testing
