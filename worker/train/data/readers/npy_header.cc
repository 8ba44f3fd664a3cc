// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/npy_header.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/files/known_formats.h"
#include "common/status/status_macros.h"
#include "worker/train/data/raw_data.h"

namespace tributary {
namespace {

// NumPy's type names without the byte order.
struct TypeName {
  const char* name;
  NpyType type;
};
constexpr TypeName kTypes[] = {
    {"f4", NpyType::kFloat32}, {"f8", NpyType::kFloat64},
    {"i1", NpyType::kInt8},    {"i2", NpyType::kInt16},
    {"i4", NpyType::kInt32},   {"i8", NpyType::kInt64},
    {"b1", NpyType::kBool},    {"u1", NpyType::kUint8},
    {"u2", NpyType::kUint16},  {"u4", NpyType::kUint32},
    {"u8", NpyType::kUint64}};

// Parses a Python dict literal as NumPy writes it:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class DictParser {
 public:
  explicit DictParser(absl::string_view text) : rest_(text) {}

  // Consumes blanks, and `token` if it follows.
  bool Take(absl::string_view token) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return absl::ConsumePrefix(&rest_, token);
  }
  std::optional<std::string> TakeString() {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return {};
    const size_t end = rest_.find(rest_[0], 1);
    if (end == absl::string_view::npos) return {};
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<Shape> TakeShape() {
    Shape shape;
    if (!Take("(")) return {};
    while (!Take(")")) {
      rest_ = absl::StripLeadingAsciiWhitespace(rest_);
      size_t digits = 0;
      while (digits < rest_.size() && absl::ascii_isdigit(rest_[digits])) {
        ++digits;
      }
      int64_t extent;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &extent)) return {};
      rest_.remove_prefix(digits);
      shape.push_back(extent);
      if (Take(",")) continue;
      if (!Take(")")) return {};
      break;
    }
    return shape;
  }
  absl::string_view rest() const { return rest_; }

 private:
  absl::string_view rest_;
};

struct Dict {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

// False unless the text is such a dict with exactly these three keys.
bool ParseDict(DictParser& parser, Dict* dict) {
  if (!parser.Take("{")) return false;
  while (!parser.Take("}")) {
    const std::optional<std::string> key = parser.TakeString();
    if (!key.has_value() || !parser.Take(":")) return false;
    if (*key == "descr") {
      dict->descr = parser.TakeString();
      if (!dict->descr.has_value()) return false;
    } else if (*key == "fortran_order") {
      const bool yes = parser.Take("True");
      if (!yes && !parser.Take("False")) return false;
      dict->fortran_order = yes;
    } else if (*key == "shape") {
      dict->shape = parser.TakeShape();
      if (!dict->shape.has_value()) return false;
    } else {
      return false;
    }
    if (!parser.Take(",")) {
      if (!parser.Take("}")) return false;
      break;
    }
  }
  return absl::StripAsciiWhitespace(parser.rest()).empty() &&
         dict->descr.has_value() && dict->fortran_order.has_value() &&
         dict->shape.has_value();
}

// Reads the text between the magic and the data.
absl::StatusOr<std::string> ReadHeaderText(InputFile* file) {
  constexpr char kMagic[] = "\x93NUMPY";
  uint8_t start[8];
  TRIBUTARY_RETURN_IF_ERROR(file->ReadExactly(8, start, "NPY magic"));
  if (std::memcmp(start, kMagic, 6) != 0 || start[6] < 1 || start[6] > 3) {
    const std::string begin(reinterpret_cast<const char*>(start), 8);
    const bool archive = absl::StartsWith(begin, "PK\x03\x04");
    return absl::InvalidArgumentError(absl::StrCat(
        file->name(), ": offset 0: wanted \\x93NUMPY and version 1, 2 or 3, ",
        "got \"", absl::CHexEscape(begin), "\"",
        archive ? "; this is an .npz archive: save each array as an .npy file"
                : LooksLike(begin + file->ReadSome())));
  }
  uint8_t b[4] = {};
  TRIBUTARY_RETURN_IF_ERROR(
      file->ReadExactly(start[6] == 1 ? 2 : 4, b, "NPY header length"));
  const uint32_t length = b[0] | b[1] << 8 | b[2] << 16 | uint32_t{b[3]} << 24;
  constexpr uint32_t kMaxLength = 1 << 20;
  if (length > kMaxLength) {
    return file->Error(absl::StrCat("wanted an NPY header of at most ",
                                    kMaxLength, " bytes, got ", length));
  }
  TRIBUTARY_RETURN_IF_ERROR(file->ExpectBacked(length, "NPY header"));
  std::string text(length, '\0');
  TRIBUTARY_RETURN_IF_ERROR(
      file->ReadExactly(length, text.data(), "NPY header"));
  return text;
}

absl::StatusOr<NpyType> FindType(const InputFile& file,
                                 const std::string& descr) {
  const std::string name = descr.empty() ? "" : descr.substr(1);
  const TypeName* const found =
      std::find_if(std::begin(kTypes), std::end(kTypes),
                   [name](const TypeName& type) { return name == type.name; });
  const bool known = found != std::end(kTypes);
  // One byte has no byte order, and programs write any sign for it.
  const bool one_byte = known && NpyTypeSize(found->type) == 1;
  if (known && absl::StrContains(one_byte ? "<>=|" : "<", descr[0])) {
    return found->type;
  }
  // NumPy's name of a type that can be read.
  std::string remedy = absl::StrCat(
      "array.astype(\"", known ? absl::StrCat("<", name) : "<f8", "\")");
  if (absl::StartsWith(name, "c")) {
    remedy = "np.stack([array.real, array.imag], axis=-1), as it is complex";
  }
  return file.Error(
      absl::StrCat("wanted little-endian NPY data of floats (f4, f8), integers "
                   "(i1 to i8, u1 to u8) or booleans (b1), got ",
                   absl::CHexEscape(descr), "; save it with ", remedy));
}

}  // namespace

size_t NpyTypeSize(NpyType type) {
  return VisitNpyType(type, [](auto value) { return sizeof(value); });
}

absl::StatusOr<NpyHeader> ReadNpyHeader(InputFile* file) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string text, ReadHeaderText(file));
  Dict dict;
  DictParser parser(text);
  if (!ParseDict(parser, &dict)) {
    return file->Error(absl::StrCat(
        "wanted an NPY header {'descr': ..., 'fortran_order': ..., 'shape': "
        "...}, but it reads otherwise at \"",
        absl::CHexEscape(parser.rest().substr(0, 40)), "\"",
        absl::StrContains(text, "'descr': [")
            ? "; it has fields with names: save plain numbers, made with "
              "numpy.lib.recfunctions.structured_to_unstructured"
            : ""));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const NpyType type, FindType(*file, *dict.descr));
  NpyHeader header{type, *dict.shape};
  if (*dict.fortran_order && header.shape.size() > 1) {
    return file->Error(
        "wanted NPY data in C order, got Fortran order; save it with "
        "numpy.ascontiguousarray");
  }
  auto size = static_cast<int64_t>(NpyTypeSize(type));
  bool possible = !header.shape.empty();
  for (int64_t extent : header.shape) {
    possible =
        possible && extent >= 1 && !__builtin_mul_overflow(size, extent, &size);
  }
  if (!possible) {
    return file->Error(absl::StrCat("wanted an NPY shape of [rows, ...], got ",
                                    ShapeText(header.shape)));
  }
  TRIBUTARY_RETURN_IF_ERROR(file->ExpectBacked(size, "NPY data"));
  return header;
}

}  // namespace tributary
