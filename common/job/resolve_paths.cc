// SPDX-License-Identifier: Apache-2.0
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/host/small_file.h"
#include "common/job/files/file_pairs.h"
#include "common/job/files/job_files.h"
#include "common/job/resolve.h"
#include "common/model_record/run_weights.h"
#include "common/status/nearest_name.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "common/status/utf8.h"

namespace tributary {

std::string FileHint(const std::string& file) {
  const std::filesystem::path path(file);
  const std::filesystem::path folder =
      path.has_parent_path() ? path.parent_path() : ".";
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(folder, error), end;
       !error && it != end && names.size() < 1000; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  const std::string nearest = NearestName(path.filename().string(), names);
  return nearest.empty() ? ""
                         : absl::StrCat("; did you mean \"", nearest, "\"?");
}

namespace {

class PathResolver {
 public:
  PathResolver(const std::string& file_name, const Places& places)
      : folder_(std::filesystem::absolute(file_name, error_).parent_path()),
        places_(places) {}

  // Makes `*file`, the value at `path` in the job, absolute unless it is empty.
  absl::Status Resolve(const std::string& path, std::string* file) {
    if (file->empty()) return absl::OkStatus();
    const std::filesystem::path full = (folder_ / *file).lexically_normal();
    struct stat info;
    if (stat(full.c_str(), &info) != 0) {
      return places_.Error(path, path, " wants a file, but ", full.string(),
                           errno == ENOENT
                               ? " does not exist"
                               : absl::StrCat(": ", strerror(errno)),
                           errno == ENOENT ? FileHint(full.string()) : "");
    }
    if (!S_ISREG(info.st_mode)) {
      return places_.Error(
          path, path, " wants a file, but ", full.string(),
          S_ISDIR(info.st_mode) ? " is a folder" : " is no regular file");
    }
    if (access(full.c_str(), R_OK) != 0) {
      return places_.Error(path, path, " wants a file, but ", full.string(),
                           " cannot be read: ", strerror(errno));
    }
    if (!IsUtf8(full.string())) {  // because of the job file's directory
      return places_.Error(path, path, " wants a path in UTF-8, got ",
                           Quoted(full.string()));
    }
    *file = full.string();
    return absl::OkStatus();
  }

  // The same for weights, which may be given as a run directory (WeightsOfRun).
  absl::Status ResolveWeights(const std::string& path, std::string* file) {
    const std::filesystem::path run = (folder_ / *file).lexically_normal();
    if (!file->empty() && std::filesystem::is_directory(run, error_)) {
      const std::string found = WeightsOfRun(run.string());
      if (const absl::Status may = CheckReadable(run.string()); !may.ok()) {
        return places_.Error(path, path,
                             " wants a safetensors file or a run directory "
                             "with weights, but ",
                             std::string(may.message()));
      }
      if (found.empty()) {
        return places_.Error(path, path,
                             " wants a safetensors file or a run directory "
                             "with weights, but ",
                             run.string(),
                             " has neither best.safetensors nor "
                             "weights.safetensors; `tributary export` writes "
                             "those of a checkpoint");
      }
      *file = found;
    }
    return Resolve(path, file);
  }

  // For a directory that need not exist yet.
  std::string Absolute(const std::string& folder) const {
    return (folder_ / folder).lexically_normal().string();
  }

  absl::Status ResolveAll(
      const std::string& path,
      google::protobuf::RepeatedPtrField<std::string>* files) {
    google::protobuf::RepeatedPtrField<std::string> named;
    named.Swap(files);
    for (int i = 0; i < named.size(); ++i) {
      // The job may give a single file in place of a list.
      const std::string item = absl::StrCat(path, ".", i);
      const std::string& place = places_.Has(item) ? item : path;
      const std::string full =
          (folder_ / named.Get(i)).lexically_normal().string();
      std::error_code error;
      if (full.find_first_of("*?[") != std::string::npos &&
          !std::filesystem::exists(full, error)) {
        TRIBUTARY_RETURN_IF_ERROR(AddMatches(place, full, files));
        matched_[path] = {files->begin(), files->end()};
      } else {
        *files->Add() = named.Get(i);
        TRIBUTARY_RETURN_IF_ERROR(
            Resolve(place, files->Mutable(files->size() - 1)));
      }
    }
    return absl::OkStatus();
  }

  // Adds the files that match a pattern of glob(7), in the order of their
  // bytes.
  absl::Status AddMatches(
      const std::string& path, const std::string& pattern,
      google::protobuf::RepeatedPtrField<std::string>* files) {
    glob_t found{};
    const int result = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
    std::vector<std::string> names(found.gl_pathv,
                                   found.gl_pathv + found.gl_pathc);
    globfree(&found);
    if (result != 0 && result != GLOB_NOMATCH) {
      return places_.Error(path, path, " cannot look for ", pattern);
    }
    if (names.empty()) {
      return places_.Error(path, path, " wants files, but none matches ",
                           pattern);
    }
    std::sort(names.begin(), names.end());
    for (std::string& name : names) {
      TRIBUTARY_RETURN_IF_ERROR(Resolve(path, &name));
      *files->Add() = std::move(name);
    }
    return absl::OkStatus();
  }

  // Call this for every list of files after all lists are resolved.
  // InvalidArgument: the list's file names are in another order than those of a
  // list that the source reads side by side with it.
  absl::Status CheckPairs(const std::string& path,
                          const std::vector<std::string>& files) {
    const std::string source = path.substr(0, path.rfind('.'));
    for (const auto& [other_path, others] : matched_) {
      if (other_path == path ||
          other_path.substr(0, other_path.rfind('.')) != source) {
        continue;
      }
      const std::optional<size_t> at = FirstMispaired(files, others);
      if (!at) continue;
      return places_.Error(
          path, path, " would be read with ", files[*at], " beside ",
          others[*at],
          ", because matches of a pattern are in the order of their bytes; "
          "name the files in their order, or rename them so that both lists "
          "sort alike, as with numbers of equally many digits");
    }
    return absl::OkStatus();
  }

 private:
  std::error_code error_;
  const std::filesystem::path folder_;
  const Places& places_;
  // [path of the list]: files that a pattern has found.
  std::map<std::string, std::vector<std::string>> matched_;
};

}  // namespace

absl::Status ResolvePaths(const std::string& file_name, const Places& places,
                          v1::JobSpec* job) {
  PathResolver resolver(file_name, places);
  if (!job->model().initialize_from().empty()) {
    TRIBUTARY_RETURN_IF_ERROR(resolver.ResolveWeights(
        "model.initialize_from",
        job->mutable_model()->mutable_initialize_from()));
  }
  if (!job->checkpoint().directory().empty()) {
    job->mutable_checkpoint()->set_directory(
        resolver.Absolute(job->checkpoint().directory()));
  }
  if (!job->has_data()) return absl::OkStatus();
  using Files = google::protobuf::RepeatedPtrField<std::string>;
  TRIBUTARY_RETURN_IF_ERROR(VisitDataFiles(
      job->mutable_data(), [&](const std::string& place, Files* files) {
        return resolver.ResolveAll(place, files);
      }));
  return VisitDataFiles(
      job->mutable_data(), [&](const std::string& place, Files* files) {
        return resolver.CheckPairs(place, {files->begin(), files->end()});
      });
}

}  // namespace tributary
