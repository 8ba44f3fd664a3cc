// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/whole_lines.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr size_t kMaxLineBytes = 1 << 20;

absl::Status CannotCut(const std::string& path, const std::error_code& why) {
  return absl::UnavailableError(
      absl::StrCat(path, ": cut to whole lines: ", why.message()));
}

// Returns the number of bytes up to the end of the file's last whole line.
uintmax_t WholeBytes(const std::string& path, uintmax_t size) {
  std::ifstream stream(path, std::ios::binary);
  std::string chunk;
  for (uintmax_t end = size; end > 0; end -= chunk.size()) {
    chunk.resize(std::min<uintmax_t>(end, kChunkBytes));
    stream.seekg(static_cast<std::streamoff>(end - chunk.size()));
    stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    if (!stream) return size;  // unreadable: remove nothing
    const size_t found = chunk.rfind('\n');
    if (found != std::string::npos) return end - chunk.size() + found + 1;
  }
  return 0;
}

}  // namespace

absl::Status CutToWholeLines(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return CannotCut(path, error);
  const uintmax_t whole = WholeBytes(path, size);
  if (whole < size) std::filesystem::resize_file(path, whole, error);
  return error ? CannotCut(path, error) : absl::OkStatus();
}

std::string BadLines::Text(const std::string& file) const {
  if (count == 0) return "";
  return absl::StrCat(file, ": skipped ", count,
                      count == 1 ? " line that cannot be read, at byte "
                                 : " lines that cannot be read, the first at "
                                   "byte ",
                      first_byte);
}

BadLines ForEachLine(const std::string& path, uint64_t from_byte,
                     const LineReader& read) {
  BadLines bad;
  std::ifstream stream(path, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(from_byte));
  std::string buffer;
  uint64_t begin = from_byte;  // first byte of the current line
  uint64_t dropped = 0;        // its bytes, if it is too long to keep
  for (size_t kept = 0;;) {
    buffer.resize(kept + kChunkBytes);
    stream.read(buffer.data() + kept, kChunkBytes);
    const auto came = static_cast<size_t>(stream.gcount());
    if (came == 0) break;
    absl::string_view rest(buffer.data(), kept + came);
    for (size_t end; (end = rest.find('\n')) != absl::string_view::npos;) {
      if (dropped > 0 || end > kMaxLineBytes || !read(rest.substr(0, end))) {
        bad.Add(begin);
      }
      begin += dropped + end + 1;
      dropped = 0;
      rest.remove_prefix(end + 1);
    }
    if (dropped > 0 || rest.size() > kMaxLineBytes) {
      dropped += rest.size();
      rest = {};
    }
    kept = rest.size();
    if (kept > 0) buffer.erase(0, rest.data() - buffer.data());
  }
  if (stream.bad()) bad.Add(begin);  // the disk has failed
  return bad;
}

}  // namespace tributary
