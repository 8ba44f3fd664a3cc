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
// units; only the last unit of a slice may have fewer elements. Bytes may lie
// at any address. Numbers are little-endian.
class Encoding {
 public:
  virtual ~Encoding() = default;

  virtual const char* name() const = 0;  // in the job file
  // Elements that are encoded together.
  virtual int64_t unit() const { return 1; }
  // Bytes of n elements.
  virtual int64_t Bytes(int64_t n) const = 0;

  // Writes n elements to Bytes(n) bytes, and reads them back.
  virtual void Encode(int64_t n, const float* values, char* out) const = 0;
  virtual void Decode(int64_t n, const char* in, float* values) const = 0;
  // The first of n encoded elements that is no finite number; -1: all are.
  virtual int64_t FirstNonFinite(int64_t n, const char* in) const = 0;
};

// Null: there is none of this name.
const Encoding* FindEncoding(std::string_view name);
// The floats themselves.
const Encoding& Float32Encoding();

// Where each file of kinds/ puts its encoding.
using Encodings = std::vector<std::unique_ptr<const Encoding>>;
const Encodings& AllEncodings();

}  // namespace tributary
