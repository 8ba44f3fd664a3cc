// SPDX-License-Identifier: Apache-2.0
#include "common/job/files/repeated_files.h"

#include <sys/stat.h>

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/files/job_files.h"

namespace tributary {
namespace {

using Files = google::protobuf::RepeatedPtrField<std::string>;

// Returns "/data/a.csv (also as /data/b.csv) and 2 others", or "" if each file
// is named once.
std::string RepeatedFiles(const Files& files) {
  struct Named {
    std::string first;
    int times = 0;
  };
  std::map<std::pair<dev_t, ino_t>, Named> named;
  std::string text;
  int more = 0;
  for (const std::string& file : files) {
    struct stat info;
    if (stat(file.c_str(), &info) != 0) continue;
    Named& same = named[{info.st_dev, info.st_ino}];
    if (same.times == 0) same.first = file;
    if (++same.times != 2) continue;
    if (!text.empty()) {
      ++more;
      continue;
    }
    text = same.first;
    if (file != text) absl::StrAppend(&text, " (also as ", file, ")");
  }
  if (more > 0)
    absl::StrAppend(&text, " and ", more, more == 1 ? " other" : " others");
  return text;
}

}  // namespace

std::vector<std::string> RepeatedFileNotes(v1::DataSpec data) {
  std::vector<std::string> notes;
  VisitDataFiles(&data, [&notes](const std::string& place, Files* files) {
    const std::string repeated = RepeatedFiles(*files);
    if (!repeated.empty()) {
      notes.push_back(absl::StrCat(
          place, " names ", repeated,
          " more than once, so that these rows count more than once; if that "
          "is not wanted, take the file out of the list or narrow the "
          "pattern"));
    }
    return absl::OkStatus();
  }).IgnoreError();  // the visitor never fails
  return notes;
}

}  // namespace tributary
