// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace tributary {

// How gradients are written in messages: a format of `wire` in the job file.
// Each file of kinds/ defines one. An encoding has no state. Its bytes depend
// only on the values, so they are the same on every instruction set.
//
// Elements are encoded in units, and the bytes of several units follow each
// other. So a caller may work through a slice in runs of whole units; only the
// last unit of a slice may have fewer elements. The size of a unit divides
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
  // True if the encoding leaves out more than rounding does. It is then only
  // for gradients, whose sender keeps what was left out (error feedback).
  virtual bool compresses() const { return false; }
  // Returns the encoding of this format that sends this fraction of the
  // elements; this one if the format sends all of them. A fraction that is too
  // small or above 1 counts as the nearest possible one. Never destroyed.
  virtual const Encoding* WithFraction(double /*fraction*/) const {
    return this;
  }
  // Bytes of n elements.
  virtual int64_t Bytes(int64_t n) const = 0;

  // Writes n elements to Bytes(n) bytes, and reads them back.
  virtual void Encode(int64_t n, const float* values, char* out) const = 0;
  virtual void Decode(int64_t n, const char* in, float* values) const = 0;
  // Returns the first of n encoded elements that is not finite; -1: all are.
  virtual int64_t FirstNonFinite(int64_t n, const char* in) const = 0;
  // Of n encoded elements, returns the first element of the first unit that
  // Encode cannot have written; -1: all units are valid. The values of such a
  // unit mean nothing, but Decode and FirstNonFinite stay within their arrays.
  virtual int64_t FirstMalformed(int64_t /*n*/, const char* /*in*/) const {
    return -1;
  }
};

// The share of the elements that top_k sends by default.
inline constexpr double kTopKFraction = 0.01;

// Returns null if no encoding has this name.
const Encoding* FindEncoding(std::string_view name);
// The encoding whose bytes are the floats themselves.
const Encoding& Float32Encoding();

// The list to which each file of kinds/ adds its encoding.
using Encodings = std::vector<std::unique_ptr<const Encoding>>;
const Encodings& AllEncodings();

}  // namespace tributary
