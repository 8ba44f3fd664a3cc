#pragma once

#include <string>
#include <vector>

namespace tributary {
class Ops;
}

namespace tributary::testing {

// How fast a key operation ran beside what the device can do at most.
struct Speed {
  std::string name;
  std::string unit;  // GB/s or TFLOP/s
  double achieved;
  double ceiling;
};

// Measures the key operations on large arrays; empty when memory is short.
std::vector<Speed> MeasureSpeeds(Ops& ops);

// What a copy kernel moves, read and written, in GB/s; 0 without CUDA.
double CopyCeiling();

}  // namespace tributary::testing
