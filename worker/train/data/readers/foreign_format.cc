// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/foreign_format.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status/shell_text.h"

namespace tributary {
namespace {

struct Format {
  absl::string_view magic;  // how such files begin
  absl::string_view name;
  absl::string_view filter;  // command to make text of standard input; or empty
  absl::string_view suffix;  // of such files' names; a text file lacks it
  absl::string_view advice;  // if there is no filter
};

constexpr absl::string_view kSaveAsCsv = "save the table as CSV";
constexpr absl::string_view kDownload = "download the file itself";
constexpr absl::string_view kFromUtf16 = "iconv -f UTF-16 -t UTF-8";
constexpr absl::string_view kFromUtf32 = "iconv -f UTF-32 -t UTF-8";

// Texts that never begin a table in UTF-8. The first that fits is used.
constexpr Format kTexts[] = {
    {{"\xFF\xFE\0\0", 4}, "UTF-32 text", kFromUtf32, "", ""},
    {{"\0\0\xFE\xFF", 4}, "UTF-32 text", kFromUtf32, "", ""},
    {"\xFF\xFE", "UTF-16 text", kFromUtf16, "", ""},
    {"\xFE\xFF", "UTF-16 text", kFromUtf16, "", ""},
    {"{\"", "JSON", "", "", kSaveAsCsv},
    {"[{", "JSON", "", "", kSaveAsCsv},
    {"<!DOCTYPE", "an HTML page", "", "", kDownload},
    {"<!doctype", "an HTML page", "", "", kDownload},
    {"<html", "an HTML page", "", "", kDownload},
    {"version https://git-lfs", "a pointer of Git LFS", "", "",
     "fetch the file itself with git lfs pull"},
};
// A column may be named FEA1, so these must also contain a control character.
constexpr Format kBinaries[] = {
    {"\x1F\x8B", "gzip data", "gzip -dc", ".gz", ""},
    {"\x1F\x9D", "compressed data", "gzip -dc", ".Z", ""},
    {"BZh", "bzip2 data", "bzip2 -dc", ".bz2", ""},
    {"\xFD\x37zXZ", "xz data", "xz -dc", ".xz", ""},
    {"\x28\xB5\x2F\xFD", "zstd data", "zstd -dc", ".zst", ""},
    {"\x04\x22\x4D\x18", "lz4 data", "lz4 -dc", ".lz4", ""},
    {"PK\x03\x04", "a zip archive, as Excel workbooks are", "", "",
     "unpack it, or save the table as CSV"},
    {"7z\xBC\xAF\x27\x1C", "a 7z archive", "", "", "unpack it"},
    {"\xD0\xCF\x11\xE0", "an Excel workbook", "", "", kSaveAsCsv},
    {"PAR1", "Parquet", "", "", kSaveAsCsv},
    {"ARROW1", "Arrow", "", "", kSaveAsCsv},
    {"FEA1", "Feather", "", "", kSaveAsCsv},
    {"ORC", "ORC", "", "", kSaveAsCsv},
    {"\x89HDF", "HDF5", "", "", kSaveAsCsv},
    {"SQLite format 3", "an SQLite database", "", "", kSaveAsCsv},
    {"\x93NUMPY", "an NPY array", "", "",
     "name it in a source of the kind npy"},
};
// Without a byte order mark, the zero bytes show the order.
constexpr Format kUtf16Le = {"", "UTF-16 text", "iconv -f UTF-16LE -t UTF-8",
                             "", ""};
constexpr Format kUtf16Be = {"", "UTF-16 text", "iconv -f UTF-16BE -t UTF-8",
                             "", ""};
constexpr Format kUnknown = {"", "binary data", "", "", kSaveAsCsv};

bool IsControl(char c) {
  return absl::ascii_iscntrl(c) && !absl::ascii_isspace(c);
}

// Returns null if it may be text in UTF-8. of_table: also recognizes texts that
// are not tables.
const Format* FormatOf(absl::string_view start, bool of_table) {
  for (const Format& format : kTexts) {
    const bool counts =
        of_table || (format.advice != kSaveAsCsv && format.advice != kDownload);
    if (counts && absl::StartsWith(start, format.magic)) return &format;
  }
  constexpr size_t kSearched = 4096;
  start = start.substr(0, kSearched);
  if (std::none_of(start.begin(), start.end(), IsControl)) return nullptr;
  for (const Format& format : kBinaries) {
    if (absl::StartsWith(start, format.magic)) return &format;
  }
  if (!absl::StrContains(start, '\0')) return nullptr;
  // In UTF-16, ASCII letters, spaces and line ends have a zero byte each: all
  // at even or all at odd places.
  size_t zeros[2] = {0, 0};  // at even and at odd places
  for (size_t i = 0; i < start.size(); ++i) zeros[i % 2] += start[i] == '\0';
  constexpr size_t kFew = 64;  // bytes for each zero that is expected
  if (zeros[0] * kFew < start.size() && zeros[1] * kFew < start.size()) {
    return &kUnknown;
  }
  if (zeros[0] > 0 && zeros[1] > 0) return &kUnknown;
  return zeros[0] > 0 ? &kUtf16Be : &kUtf16Le;
}

// The message about a file in this format; "" if `format` is null.
std::string Text(const Format* format, const std::string& file, bool packed) {
  if (format == nullptr) return "";
  const std::string what =
      absl::StrCat("wanted text in UTF-8, plain or packed by gzip, but ",
                   packed ? "inside gzip " : "", "this is ", format->name);
  if (format->filter.empty()) return absl::StrCat(what, "; ", format->advice);
  return absl::StrCat(
      what, "; convert it, as in: ",
      ConvertCommand(format->filter, file, format->suffix, packed));
}

bool Exists(const std::string& name) {
  std::error_code error;
  return std::filesystem::exists(name, error);
}

}  // namespace

std::string ConvertCommand(absl::string_view filter, const std::string& file,
                           absl::string_view suffix, bool packed) {
  absl::string_view to = file;
  if (packed) absl::ConsumeSuffix(&to, ".gz");
  const bool renames = !suffix.empty() && absl::ConsumeSuffix(&to, suffix);
  std::string name(to);
  // Chooses another name if a file has this one, which would be lost.
  for (bool taken = !renames; taken || Exists(name); taken = false) {
    const size_t folder = name.rfind('/');
    name.insert(folder == std::string::npos ? 0 : folder + 1, "new-");
  }
  const std::string from = ShellText({file});
  return absl::StrCat(packed ? absl::StrCat("gzip -dc < ", from, " | ") : "",
                      filter, packed ? "" : absl::StrCat(" < ", from), " > ",
                      ShellText({name}));
}

std::string ForeignFormat(absl::string_view start, const std::string& file,
                          bool packed) {
  return Text(FormatOf(start, /*of_table=*/true), file, packed);
}

std::string ForeignText(absl::string_view start, const std::string& file,
                        bool packed, bool bytes) {
  const Format* const format = FormatOf(start, /*of_table=*/false);
  const bool is_packed = format != nullptr && !format->suffix.empty();
  const bool counts = is_packed || (!bytes && format != &kUnknown);
  return counts ? Text(format, file, packed) : "";
}

}  // namespace tributary
