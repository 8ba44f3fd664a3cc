#include "common/job/job_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "common/job/override.h"
#include "common/job/proto_reader.h"
#include "common/job/resolve.h"
#include "common/job/validate/validate.h"
#include "common/job/yaml_tree.h"
#include "common/status/place.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Stops reading once the file exceeds the size limit of job files.
absl::StatusOr<std::string> ReadText(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) {
      return absl::NotFoundError(absl::StrCat(path, ": no such job file"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot be read: ", strerror(errno)));
  }
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": wants a job file, got a folder"));
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text(kMaxYamlBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || !stream.eof()) {
    return absl::InvalidArgumentError(
        stream.gcount() > static_cast<std::streamsize>(kMaxYamlBytes)
            ? absl::StrCat(path, ": wants at most ", kMaxYamlBytes, " bytes")
            : absl::StrCat(path, ": cannot be read"));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

}  // namespace

absl::StatusOr<v1::JobSpec> ReadJobFile(
    const std::string& path, const std::vector<std::string>& overrides) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseJob(text, path, overrides);
}

absl::StatusOr<v1::JobSpec> ParseJob(
    absl::string_view text, const std::string& file_name,
    const std::vector<std::string>& overrides) {
  const YamlSource source{.name = file_name};
  TRIBUTARY_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, source));
  v1::JobSpec job;
  Places places;
  places.Record("", file_name);
  TRIBUTARY_RETURN_IF_ERROR(
      ProtoReader(source, &places).ReadMessage(root, "", &job));
  for (const std::string& override_text : overrides) {
    TRIBUTARY_RETURN_IF_ERROR(ApplyOverride(override_text, &places, &job));
  }
  TRIBUTARY_RETURN_IF_ERROR(ResolveFields(file_name, &places, &job));
  TRIBUTARY_RETURN_IF_ERROR(ValidateJob(places, job));
  TRIBUTARY_RETURN_IF_ERROR(ResolvePaths(file_name, places, &job));
  TRIBUTARY_RETURN_IF_ERROR(ValidateInitialWeights(places, job));
  return job;
}

}  // namespace tributary
