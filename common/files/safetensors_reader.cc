// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/encoding/encoding.h"
#include "common/files/known_formats.h"
#include "common/files/safetensors.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "nlohmann/json.hpp"

namespace tributary {
namespace {

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
// Room for tens of thousands of tensors. Bounds the allocation for a bad file.
constexpr uint64_t kMaxTensorListBytes = 16 << 20;
// Enough bytes to recognize a file of another format.
constexpr uint64_t kLongestMagic = 64;

// Values that are converted at once.
constexpr size_t kChunk = 1 << 16;

// A type that can be read as floats.
struct Dtype {
  const char* name;
  uint64_t bytes;
  const char* encoding;  // of common/encoding
};

constexpr Dtype kDtypes[] = {
    {"F32", 4, "float32"}, {"F16", 2, "float16"}, {"BF16", 2, "bfloat16"}};

// Returns null for a type that cannot be read; its values may have any size.
const Dtype* FindDtype(absl::string_view name) {
  for (const Dtype& dtype : kDtypes) {
    if (name == dtype.name) return &dtype;
  }
  return nullptr;
}

struct Entry {
  std::string name;
  Shape shape;
  std::string dtype;
  uint64_t begin = 0;  // bytes from the start of the data
  uint64_t end = 0;
};

std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status ReadAt(const std::string& path, int fd, uint64_t offset,
                    char* data, size_t size) {
  while (size > 0) {
    const ssize_t got = pread(fd, data, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return absl::DataLossError(absl::StrCat(
          path, ": byte ", offset, ": ",
          got == 0 ? "the file ends here, it was longer when it was opened"
                   : strerror(errno)));
    }
    data += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

// Checks one header against the size of the data that follows it.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, uint64_t data_bytes)
      : path_(path), data_bytes_(data_bytes) {}

  // The tensors in the order of their data.
  absl::StatusOr<std::vector<Entry>> Read(const std::string& text) {
    TRIBUTARY_ASSIGN_OR_RETURN(const json header, Parse(text));
    if (!header.is_object()) return Error("the header wants a JSON object");
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") continue;
      TRIBUTARY_ASSIGN_OR_RETURN(Entry entry, ReadEntry(name, value));
      entries.push_back(std::move(entry));
    }
    std::stable_sort(
        entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
          return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
        });
    TRIBUTARY_RETURN_IF_ERROR(CheckContiguous(entries));
    return entries;
  }

 private:
  template <typename... Text>
  absl::Status Error(const Text&... text) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", text...));
  }

  // Refuses duplicate names, of which the JSON parser would keep only one.
  absl::StatusOr<json> Parse(const std::string& text) const {
    std::set<std::string> names;
    std::string twice;
    const auto watch = [&](int depth, json::parse_event_t event, json& key) {
      if (event == json::parse_event_t::key && depth == 1) {
        const auto& name = key.get_ref<const std::string&>();
        if (!names.insert(name).second) twice = name;
      }
      return true;
    };
    json header;
    try {
      header = json::parse(text, watch);
    } catch (const json::parse_error& e) {
      return Error("byte ", kLengthBytes + std::max<uint64_t>(e.byte, 1) - 1,
                   ": the header is no JSON");
    } catch (const std::exception& e) {
      return Error("the header is no JSON: ", e.what());
    }
    if (!twice.empty()) return Error("two tensors are named ", Quoted(twice));
    return header;
  }

  absl::StatusOr<Entry> ReadEntry(const std::string& name,
                                  const json& value) const {
    const std::string tensor = absl::StrCat("tensor ", Quoted(name));
    if (!value.is_object()) return Error(tensor, " wants a JSON object");
    const json dtype = value.value("dtype", json());
    if (!dtype.is_string()) return Error(tensor, " wants a dtype");
    Entry entry{.name = name, .shape = {}, .dtype = dtype.get<std::string>()};
    const Dtype* type = FindDtype(entry.dtype);
    uint64_t bytes = type == nullptr ? 1 : type->bytes;
    TRIBUTARY_RETURN_IF_ERROR(
        ReadShape(tensor, value.value("shape", json()), &entry.shape, &bytes));
    TRIBUTARY_RETURN_IF_ERROR(
        ReadOffsets(tensor, value.value("data_offsets", json()), &entry));
    if (type != nullptr && entry.end - entry.begin != bytes) {
      return Error(tensor, " of shape ", ShapeText(entry.shape), " wants ",
                   bytes, " bytes, its data_offsets hold ",
                   entry.end - entry.begin);
    }
    return entry;
  }

  // Multiplies `bytes` by the number of elements.
  absl::Status ReadShape(const std::string& tensor, const json& extents,
                         Shape* shape, uint64_t* bytes) const {
    if (!extents.is_array()) return Error(tensor, " wants a shape");
    for (const json& extent : extents) {
      if (!extent.is_number_unsigned()) {
        return Error(tensor, " wants whole numbers in its shape");
      }
      const uint64_t n = extent.get<uint64_t>();
      // An element has at least one bit. So no extent exceeds 8 data_bytes_,
      // and the checks here also keep the product and int64 from overflowing.
      if (n / 8 > data_bytes_ || (n > 0 && *bytes > INT64_MAX / n)) {
        return Error(tensor, " has a shape larger than the file");
      }
      *bytes *= n;
      shape->push_back(static_cast<int64_t>(n));
    }
    return absl::OkStatus();
  }

  absl::Status ReadOffsets(const std::string& tensor, const json& offsets,
                           Entry* entry) const {
    if (!offsets.is_array() || offsets.size() != 2 ||
        !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
      return Error(tensor, " wants two data_offsets");
    }
    entry->begin = offsets[0].get<uint64_t>();
    entry->end = offsets[1].get<uint64_t>();
    if (entry->begin > entry->end || entry->end > data_bytes_) {
      return Error(tensor, " has data_offsets ", entry->begin, " to ",
                   entry->end, ", the file holds ", data_bytes_,
                   " bytes of data");
    }
    return absl::OkStatus();
  }

  absl::Status CheckContiguous(const std::vector<Entry>& entries) const {
    uint64_t expected = 0;
    for (const Entry& entry : entries) {
      if (entry.begin != expected) {
        return Error("tensor ", Quoted(entry.name), " begins at data byte ",
                     entry.begin, ", the tensors before it end at ", expected);
      }
      expected = entry.end;
    }
    if (expected != data_bytes_) {
      return Error("the tensors end at data byte ", expected,
                   ", the file holds ", data_bytes_, " bytes of data");
    }
    return absl::OkStatus();
  }

  const std::string& path_;
  const uint64_t data_bytes_;
};

}  // namespace

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(
    const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer. A pipe is refused,
  // because it is not a regular file.
  SafetensorsReader reader(
      path, UniqueFd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)));
  const int fd = reader.fd_.get();
  if (fd < 0) {
    const std::string text = absl::StrCat(path, ": ", strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(text)
                           : absl::InvalidArgumentError(text);
  }
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no regular file"));
  }
  const uint64_t file_bytes = static_cast<uint64_t>(info.st_size);
  uint64_t length = 0;
  std::string begin(std::min(file_bytes, kLongestMagic), '\0');
  TRIBUTARY_RETURN_IF_ERROR(ReadAt(path, fd, 0, begin.data(), begin.size()));
  if (file_bytes < kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a safetensors file", LooksLike(begin),
                     ": wants at least 8 bytes, got ", file_bytes));
  }
  std::memcpy(&length, begin.data(), sizeof(length));
  if (length > kMaxTensorListBytes || length > file_bytes - kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a safetensors file", LooksLike(begin),
                     ": byte 0: wants a header of at most ",
                     std::min(kMaxTensorListBytes, file_bytes - kLengthBytes),
                     " bytes, got ", length));
  }
  std::string header(length, '\0');
  TRIBUTARY_RETURN_IF_ERROR(
      ReadAt(path, fd, kLengthBytes, header.data(), header.size()));
  const uint64_t data_start = kLengthBytes + length;
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::vector<Entry> entries,
      HeaderReader(path, file_bytes - data_start).Read(header));
  for (Entry& entry : entries) {
    reader.tensors_.push_back({std::move(entry.name), std::move(entry.shape)});
    reader.offsets_.push_back(data_start + entry.begin);
    reader.dtypes_.push_back(std::move(entry.dtype));
  }
  return reader;
}

absl::Status SafetensorsReader::CheckType(size_t index) const {
  if (FindDtype(dtypes_[index]) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path_, ": tensor ", Quoted(tensors_[index].name),
      " wants dtype F32, F16 or BF16, got ", Quoted(dtypes_[index])));
}

absl::Status SafetensorsReader::Read(size_t index,
                                     absl::Span<float> values) const {
  if (index >= tensors_.size() ||
      values.size() != static_cast<size_t>(tensors_[index].size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": wants room for a tensor of the file, got ",
                     values.size(), " values for tensor ", index));
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckType(index));
  const Dtype& dtype = *FindDtype(dtypes_[index]);
  const Encoding& encoding = *FindEncoding(dtype.encoding);
  if (&encoding == &Float32Encoding()) {
    return ReadAt(path_, fd_.get(), offsets_[index],
                  reinterpret_cast<char*>(values.data()),
                  values.size() * sizeof(float));
  }
  std::vector<char> bytes(std::min(values.size(), kChunk) * dtype.bytes);
  for (size_t at = 0; at < values.size(); at += kChunk) {
    const size_t n = std::min(values.size() - at, kChunk);
    TRIBUTARY_RETURN_IF_ERROR(ReadAt(path_, fd_.get(),
                                     offsets_[index] + at * dtype.bytes,
                                     bytes.data(), n * dtype.bytes));
    encoding.Decode(static_cast<int64_t>(n), bytes.data(), &values[at]);
  }
  return absl::OkStatus();
}

absl::Status SafetensorsReader::ReadFinite(size_t index,
                                           absl::Span<float> values) const {
  TRIBUTARY_RETURN_IF_ERROR(Read(index, values));
  const auto wrong = std::find_if(values.begin(), values.end(),
                                  [](float x) { return !std::isfinite(x); });
  if (wrong == values.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path_, ": tensor ", Quoted(tensors_[index].name), " has ", *wrong,
      " at element ", wrong - values.begin(), ", wanted finite numbers"));
}

absl::Status MatchTensors(const SafetensorsReader& reader,
                          const ParameterSpecs& specs) {
  std::map<std::string, Shape> shapes;
  for (const ParameterSpec& tensor : reader.tensors()) {
    shapes[tensor.name] = tensor.shape;
  }
  for (const ParameterSpec& spec : specs) {
    const auto it = shapes.find(spec.name);
    if (it == shapes.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("wants a tensor ", Quoted(spec.name), " of shape ",
                       ShapeText(spec.shape), ", there is none"));
    }
    if (it->second != spec.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("wants tensor ", Quoted(spec.name), " of shape ",
                       ShapeText(spec.shape), ", got ", ShapeText(it->second)));
    }
    shapes.erase(it);
  }
  if (!shapes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a tensor ", Quoted(shapes.begin()->first),
                     " that the model lacks"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<float>>> ReadSafetensors(
    const std::string& path, const ParameterSpecs& specs) {
  TRIBUTARY_ASSIGN_OR_RETURN(const SafetensorsReader reader,
                             SafetensorsReader::Open(path));
  if (absl::Status match = MatchTensors(reader, specs); !match.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", match.message()));
  }
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < specs.size(); ++i) {
    places[reader.tensors()[i].name] = i;
  }
  std::vector<std::vector<float>> tensors;
  for (const ParameterSpec& spec : specs) {
    std::vector<float>& values = tensors.emplace_back(spec.size());
    TRIBUTARY_RETURN_IF_ERROR(
        reader.Read(places[spec.name], absl::MakeSpan(values)));
  }
  return tensors;
}

}  // namespace tributary
