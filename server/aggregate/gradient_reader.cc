// SPDX-License-Identifier: Apache-2.0
#include "server/aggregate/gradient_reader.h"

#include <algorithm>

#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

// Elements that are scanned or decoded at a time. A multiple of every unit, and
// few enough for the first-level cache.
constexpr int64_t kRun = 2048;

// Sets `first` to an element `at` of the run that begins at `origin`, unless an
// earlier run had one. at: -1 for none.
void Note(int64_t origin, int64_t at, int64_t* first) {
  if (at >= 0 && *first < 0) *first = origin + at;
}

}  // namespace

GradientScan ScanGradient(const Block& block, const Payload& payload,
                          const std::vector<bool>& ignored) {
  const bool has_wrong_size =
      payload.size() != static_cast<size_t>(block.gradient_bytes());
  if (block.sends_floats() || has_wrong_size) {
    const Payload::Scan floats = payload.ScanFloats();
    if (ignored.empty() || has_wrong_size || floats.first_nonfinite < 0) {
      return {floats.crc32c, floats.first_nonfinite};
    }
  }
  GradientScan scan;
  FloatReader reader(payload);
  std::vector<char> scratch;
  for (size_t i = 0; i < block.slices.size(); ++i) {
    const Slice& slice = block.slices[i];
    const Encoding& encoding = *slice.encoding;
    const bool any_numbers = !ignored.empty() && ignored[i];
    for (int64_t begin = 0; begin < slice.size(); begin += kRun) {
      const int64_t n = std::min(kRun, slice.size() - begin);
      const auto bytes = static_cast<size_t>(encoding.Bytes(n));
      scratch.resize(std::max(scratch.size(), bytes));
      const char* const run = reader.NextBytes(bytes, scratch.data());
      scan.crc32c = ExtendCrc32c(scan.crc32c, run, bytes);
      const int64_t origin = slice.offset + begin;
      if (!any_numbers) {
        Note(origin, encoding.FirstNonFinite(n, run), &scan.first_nonfinite);
      }
      Note(origin, encoding.FirstMalformed(n, run), &scan.first_malformed);
    }
  }
  return scan;
}

int64_t GradientReader::Ahead() {
  return floats_ ? bytes_.FloatsInPlace() : kRun;
}

const float* GradientReader::Next(int64_t n, float* scratch) {
  if (floats_) return bytes_.Next(n, scratch);
  for (int64_t done = 0; done < n;)
    done += DecodeSome(n - done, scratch + done);
  return scratch;
}

int64_t GradientReader::DecodeSome(int64_t n, float* out) {
  const auto rest = static_cast<int64_t>(unit_.size() - unit_at_);
  if (rest > 0) {
    const int64_t count = std::min(n, rest);
    std::copy_n(unit_.begin() + static_cast<int64_t>(unit_at_), count, out);
    unit_at_ += static_cast<size_t>(count);
    return count;
  }
  const Slice& slice = block_.slices[slice_];
  const Encoding& encoding = *slice.encoding;
  const int64_t left = slice.size() - at_;
  // Decodes whole units, or up to the slice's end; to unit_ if only a part of
  // one unit is wanted.
  int64_t count = std::min({n, left, kRun});
  if (count < left) count -= count % encoding.unit();
  const bool part = count == 0;
  if (part) count = std::min(encoding.unit(), left);
  const auto bytes = static_cast<size_t>(encoding.Bytes(count));
  encoded_.resize(std::max(encoded_.size(), bytes));
  if (part) {
    unit_.resize(static_cast<size_t>(count));
    unit_at_ = 0;
  }
  encoding.Decode(count, bytes_.NextBytes(bytes, encoded_.data()),
                  part ? unit_.data() : out);
  at_ += count;
  if (at_ == slice.size()) {
    ++slice_;
    at_ = 0;
  }
  return part ? DecodeSome(n, out) : count;
}

}  // namespace tributary
