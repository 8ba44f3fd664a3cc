// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace tributary {

// How gradients are written in messages: a format of `wire` in the job file.
// Each file of kinds/ defines one. An encoding has no state. Its bytes depend
// on the values alone, and so they are the same on every instruction set.
//
// Elements are encoded in units. The bytes of several units are those of each,
// one after the other, so a caller may work through a slice in runs of whole
// units; only the last unit of a slice may have fewer elements. A unit divides
// kGrainElements (common/plan), at whose multiples parameters are cut into
// slices. So units, and with them the values that are decoded, do not depend on
// the number of servers. Bytes may lie at any address. Numbers are
// little-endian.
class Encoding {
 public:
  virtual ~Encoding() = default;

  virtual const char* name() const = 0;  // in the job file
  // Elements that are encoded together.
  virtual int64_t unit() const { return 1; }
  // Leaves out more than rounding does. For gradients alone, whose sender keeps
  // what was left out (error feedback).
  virtual bool compresses() const { return false; }
  // The encoding that sends this share of the elements, above 0 and at most 1;
  // this one if the format sends all of them. Other fractions count as the
  // nearest of these. Outlives everything.
  virtual const Encoding* WithFraction(double /*fraction*/) const {
    return this;
  }
  // Bytes of n elements.
  virtual int64_t Bytes(int64_t n) const = 0;

  // Writes n elements to Bytes(n) bytes, and reads them back.
  virtual void Encode(int64_t n, const float* values, char* out) const = 0;
  virtual void Decode(int64_t n, const char* in, float* values) const = 0;
  // The first of n encoded elements that is no finite number; -1: all are.
  virtual int64_t FirstNonFinite(int64_t n, const char* in) const = 0;
  // The beginning of the first unit of n encoded elements that Encode never
  // writes and whose values mean nothing; -1: there is none. Decode and
  // FirstNonFinite stay within their arrays all the same.
  virtual int64_t FirstMalformed(int64_t /*n*/, const char* /*in*/) const {
    return -1;
  }
};

// The share of the elements that top_k sends by default.
inline constexpr double kTopKFraction = 0.01;

// Null: there is none of this name.
const Encoding* FindEncoding(std::string_view name);
// The floats themselves.
const Encoding& Float32Encoding();

// Where each file of kinds/ puts its encoding.
using Encodings = std::vector<std::unique_ptr<const Encoding>>;
const Encodings& AllEncodings();

}  // namespace tributary
