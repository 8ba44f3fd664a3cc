// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "nlohmann/json.hpp"

namespace tributary {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are written as they stand in memory");

constexpr size_t kAlignment = 8;

absl::StatusOr<std::string> HeaderOf(const std::string& path,
                                     const ParameterSpecs& specs) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::set<std::string> names;
  uint64_t offset = 0;
  for (const ParameterSpec& spec : specs) {
    if (!names.insert(spec.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": two tensors are named ", Quoted(spec.name)));
    }
    const uint64_t end =
        offset + static_cast<uint64_t>(spec.size()) * sizeof(float);
    header[spec.name] = {{"dtype", "F32"},
                         {"shape", spec.shape},
                         {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a tensor's name is not UTF-8"));
  }
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    const std::string& path, const ParameterSpecs& specs) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string header, HeaderOf(path, specs));
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file,
                             AtomicFile::CreateOutput(path));
  const uint64_t length = header.size();
  TRIBUTARY_RETURN_IF_ERROR(file->Append(&length, sizeof(length)));
  TRIBUTARY_RETURN_IF_ERROR(file->Append(header));
  uint64_t values = 0;
  for (const ParameterSpec& spec : specs) {
    values += static_cast<uint64_t>(spec.size());
  }
  return std::unique_ptr<SafetensorsWriter>(
      new SafetensorsWriter(std::move(file), path, values));
}

absl::Status SafetensorsWriter::Append(absl::Span<const float> values) {
  if (values.size() > missing_) {
    return absl::FailedPreconditionError(absl::StrCat(
        path_, ": wants ", missing_, " more values, got ", values.size()));
  }
  missing_ -= values.size();
  return file_->Append(values.data(), values.size() * sizeof(float));
}

absl::Status SafetensorsWriter::Commit() {
  if (missing_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", missing_, " values are missing"));
  }
  return file_->Commit();
}

absl::Status WriteSafetensors(const std::string& path,
                              const ParameterSpecs& specs,
                              absl::Span<const float* const> data) {
  if (specs.size() != data.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": wants values for ", specs.size(),
                     " tensors, got ", data.size()));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsWriter> writer,
                             SafetensorsWriter::Create(path, specs));
  for (size_t i = 0; i < specs.size(); ++i) {
    TRIBUTARY_RETURN_IF_ERROR(writer->Append(
        absl::MakeSpan(data[i], static_cast<size_t>(specs[i].size()))));
  }
  return writer->Commit();
}

}  // namespace tributary
