// SPDX-License-Identifier: Apache-2.0
#include "worker/data/readers/idx_reader.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files/known_formats.h"
#include "common/status/about_field.h"
#include "common/status/status_macros.h"

namespace tributary {

// Checks that the product of the extents does not overflow.
absl::StatusOr<Shape> ReadIdxHeader(InputFile* file, int min_dimensions,
                                    int max_dimensions) {
  uint8_t magic[4];
  TRIBUTARY_RETURN_IF_ERROR(file->ReadExactly(4, magic, "IDX magic"));
  const int dimensions = magic[3];
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != 8 ||
      dimensions < min_dimensions || dimensions > max_dimensions) {
    const std::string begin(reinterpret_cast<const char*>(magic), 4);
    const bool idx = absl::StartsWith(begin, absl::string_view("\0\0\x08", 3));
    const char* other = max_dimensions > 1 ? "; is it a file of labels?"
                                           : "; is it a file of images?";
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: offset 0: wanted the IDX magic of unsigned bytes in %s%d "
        "dimensions (00 00 08 %02x), got %02x %02x %02x %02x%s",
        file->name(), max_dimensions > min_dimensions ? "at least " : "",
        min_dimensions, min_dimensions, magic[0], magic[1], magic[2], magic[3],
        idx ? other : LooksLike(begin + file->ReadSome())));
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

namespace {

// Reads the rows of `range`, `width` bytes each, from `available` rows.
absl::StatusOr<std::vector<uint8_t>> ReadRows(InputFile* file, int64_t width,
                                              const RowRange& range,
                                              int64_t available,
                                              const char* what) {
  TRIBUTARY_RETURN_IF_ERROR(file->ExpectBacked(available * width, what));
  TRIBUTARY_RETURN_IF_ERROR(file->Skip(range.first * width, what));
  std::vector<uint8_t> bytes(range.count * width);
  TRIBUTARY_RETURN_IF_ERROR(
      file->ReadExactly(bytes.size(), bytes.data(), what));
  if (range.first + range.count == available) {
    TRIBUTARY_RETURN_IF_ERROR(file->ExpectEnd());
  }
  return bytes;
}

}  // namespace

absl::StatusOr<RawData> ReadIdx(InputFile* images, InputFile* labels,
                                const RowRange& range, TargetKind kind) {
  TRIBUTARY_ASSIGN_OR_RETURN(const Shape image_extents,
                             ReadIdxHeader(images, 2, 4));
  TRIBUTARY_ASSIGN_OR_RETURN(const Shape label_extents,
                             AboutField(ReadIdxHeader(labels, 1, 1), "labels"));
  const int64_t available = image_extents[0];
  if (label_extents[0] != available) {
    return absl::InvalidArgumentError(
        absl::StrCat(images->name(), " holds ", available, " images, but ",
                     labels->name(), " holds ", label_extents[0], " labels"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const RowRange rows,
                             ResolveRange(range, available, images->name()));

  RawData data;
  data.name = images->name();
  data.rows = rows.count;
  data.feature_shape.assign(image_extents.begin() + 1, image_extents.end());
  data.numeric_width = NumElements(data.feature_shape);
  data.byte_divisor = 255;
  TRIBUTARY_ASSIGN_OR_RETURN(data.bytes, ReadRows(images, data.numeric_width,
                                                  rows, available, "images"));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::vector<uint8_t> label_bytes,
      AboutField(ReadRows(labels, /*width=*/1, rows, available, "labels"),
                 "labels"));
  data.targets.kind = kind;
  data.targets.name = labels->name();
  const auto place = [&](int64_t row) {
    return absl::StrCat(labels->name(), ": row ", rows.first + row);
  };
  for (size_t row = 0; row < label_bytes.size(); ++row) {
    absl::Status status = data.targets.Append(label_bytes[row]);
    if (!status.ok()) {
      return AboutField(absl::InvalidArgumentError(
                            absl::StrCat(place(row), ": ", status.message())),
                        "labels");
    }
  }
  data.targets.FindGreatest(place);
  return data;
}

}  // namespace tributary
