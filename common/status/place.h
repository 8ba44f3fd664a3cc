// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tributary {

// Remembers where each value of a job was written, so that an error found later
// can name its line. Paths are those of --set: "training.optimizer.adam",
// "model.sequential.2.linear.in"; the job itself is "".
class Places {
 public:
  // `place` is the start of an error message: "job.yaml:12" or "--set seed=1".
  void Record(const std::string& path, std::string place) {
    places_[path] = std::move(place);
  }

  // Forgets a path and everything below it, because another value replaces it.
  void Forget(const std::string& path) {
    places_.erase(path);
    // '/' follows '.' in ASCII, so this range is all paths that begin with
    // "path.".
    places_.erase(places_.lower_bound(path + "."),
                  places_.lower_bound(path + "/"));
  }

  bool Has(const std::string& path) const { return places_.contains(path); }

  // The place of the path or of its nearest recorded ancestor.
  std::string Find(absl::string_view path) const {
    while (true) {
      if (auto it = places_.find(std::string(path)); it != places_.end()) {
        return it->second;
      }
      if (path.empty()) return "job";
      const size_t dot = path.rfind('.');
      path = dot == absl::string_view::npos ? "" : path.substr(0, dot);
    }
  }

  // An error about the value at `path`, such as "job.yaml:12: text".
  template <typename... Text>
  absl::Status Error(absl::string_view path, const Text&... text) const {
    return absl::InvalidArgumentError(absl::StrCat(Find(path), ": ", text...));
  }

 private:
  std::map<std::string, std::string> places_;
};

// "training" and "epochs" make "training.epochs".
inline std::string JoinPath(absl::string_view path, absl::string_view name) {
  return path.empty() ? std::string(name) : absl::StrCat(path, ".", name);
}

}  // namespace tributary
