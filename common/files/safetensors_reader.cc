#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/safetensors.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "nlohmann/json.hpp"

namespace tributary {
namespace {

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
// Room for tens of thousands of tensors. Bounds the allocation for a bad file.
constexpr uint64_t kMaxHeaderBytes = 16 << 20;

struct Entry {
  std::string name;
  Shape shape;
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
    if (dtype != "F32") {
      return Error(
          tensor, " wants dtype F32, got ",
          dtype.is_string() ? Quoted(dtype.get<std::string>()) : "none");
    }
    Entry entry{.name = name, .shape = {}};
    const json shape = value.value("shape", json());
    if (!shape.is_array()) return Error(tensor, " wants a shape");
    uint64_t bytes = sizeof(float);
    for (const json& extent : shape) {
      if (!extent.is_number_unsigned()) {
        return Error(tensor, " wants whole numbers in its shape");
      }
      const uint64_t n = extent.get<uint64_t>();
      // No extent of a tensor in the file exceeds data_bytes_, so the checks
      // here also keep the product and int64 from overflowing.
      if (n > data_bytes_ || (n > 0 && bytes > UINT64_MAX / n)) {
        return Error(tensor, " has a shape larger than the file");
      }
      bytes *= n;
      entry.shape.push_back(static_cast<int64_t>(n));
    }
    TRIBUTARY_RETURN_IF_ERROR(
        ReadOffsets(tensor, value.value("data_offsets", json()), &entry));
    if (entry.end - entry.begin != bytes) {
      return Error(tensor, " of shape ", ShapeText(entry.shape), " wants ",
                   bytes, " bytes, its data_offsets hold ",
                   entry.end - entry.begin);
    }
    return entry;
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
  SafetensorsReader reader(path,
                           UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
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
  if (file_bytes < kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": too short for a safetensors file: ", file_bytes, " bytes"));
  }
  TRIBUTARY_RETURN_IF_ERROR(
      ReadAt(path, fd, 0, reinterpret_cast<char*>(&length), sizeof(length)));
  if (length > kMaxHeaderBytes || length > file_bytes - kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": byte 0: wants a header of at most ",
                     std::min(kMaxHeaderBytes, file_bytes - kLengthBytes),
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
  }
  return reader;
}

absl::Status SafetensorsReader::Read(size_t index,
                                     absl::Span<float> values) const {
  if (index >= tensors_.size() ||
      values.size() != static_cast<size_t>(tensors_[index].size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": wants room for a tensor of the file, got ",
                     values.size(), " values for tensor ", index));
  }
  return ReadAt(path_, fd_.get(), offsets_[index],
                reinterpret_cast<char*>(values.data()),
                values.size() * sizeof(float));
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
