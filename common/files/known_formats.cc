// SPDX-License-Identifier: Apache-2.0
#include "common/files/known_formats.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

struct KnownFormat {
  absl::string_view magic;
  absl::string_view text;
};

constexpr KnownFormat kKnownFormats[] = {
    {"version https://git-lfs",
     "a Git LFS pointer; fetch the file itself with git lfs pull"},
    {"PK\x03\x04",
     "a zip archive, such as torch.save and numpy.savez write; save the "
     "tensors "
     "or arrays in the wanted format"},
    {"\x80\x02", "a pickle of Python, such as torch.save writes"},
    {"\x80\x03", "a pickle of Python"},
    {"\x80\x04", "a pickle of Python"},
    {"\x80\x05", "a pickle of Python"},
    {"GGUF", "a GGUF file"},
    {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
    {"\x93NUMPY", "an NPY file"},
    {"\x1f\x8b", "gzip; unpack it with gunzip"},
    {"\x28\xb5\x2f\xfd", "zstd; unpack it with unzstd"},
    {"{", "JSON, such as the index of weights in several files"}};

}  // namespace

std::string LooksLike(absl::string_view begin) {
  absl::string_view what;
  if (begin.empty()) what = "an empty file";
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(begin);
  if (absl::StartsWithIgnoreCase(text, "<!doctype html") ||
      absl::StartsWithIgnoreCase(text, "<html")) {
    what = "an HTML page; was it downloaded from the page of the file?";
  }
  for (const KnownFormat& format : kKnownFormats) {
    if (absl::StartsWith(begin, format.magic)) what = format.text;
  }
  return what.empty() ? "" : absl::StrCat(" (looks like ", what, ")");
}

}  // namespace tributary
