// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/idx_header.h"

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/files/known_formats.h"
#include "common/status/status_macros.h"

namespace tributary {

namespace {

// Advice about a file that does not begin as wanted.
std::string OtherFile(absl::string_view magic, int max_dimensions) {
  if (absl::StartsWith(magic, absl::string_view("\0\0\x08", 3))) {
    return max_dimensions > 1 ? "; is it a file of labels?"
                              : "; is it a file of images?";
  }
  const bool other_type =
      absl::StartsWith(magic, absl::string_view("\0\0", 2)) && magic[2] >= 9 &&
      magic[2] <= 14;
  return other_type ? "; save other numbers as NPY files (numpy.save) and use "
                      "the source npy"
                    : "";
}

}  // namespace

// Checks that the product of the extents does not overflow.
absl::StatusOr<Shape> ReadIdxHeader(InputFile* file, int min_dimensions,
                                    int max_dimensions) {
  uint8_t magic[4];
  TRIBUTARY_RETURN_IF_ERROR(file->ReadExactly(4, magic, "IDX magic"));
  const int dimensions = magic[3];
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != 8 ||
      dimensions < min_dimensions || dimensions > max_dimensions) {
    const std::string begin(reinterpret_cast<const char*>(magic), 4);
    const std::string other = OtherFile(begin, max_dimensions);
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: offset 0: wanted the IDX magic of unsigned bytes in %s%d "
        "dimensions (00 00 08 %02x), got %02x %02x %02x %02x%s",
        file->name(), max_dimensions > min_dimensions ? "at least " : "",
        min_dimensions, min_dimensions, magic[0], magic[1], magic[2], magic[3],
        other.empty() ? LooksLike(begin + file->ReadSome()) : other));
  }
  Shape extents;
  int64_t size = 1;
  for (int i = 0; i < dimensions; ++i) {
    uint8_t b[4];
    TRIBUTARY_RETURN_IF_ERROR(file->ReadExactly(4, b, "IDX extent"));
    const int64_t extent = int64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3];
    extents.push_back(extent);
    if (extent < 1 || __builtin_mul_overflow(size, extent, &size)) {
      return file->Error(
          absl::StrCat("impossible IDX extents ", ShapeText(extents)));
    }
  }
  return extents;
}

}  // namespace tributary
