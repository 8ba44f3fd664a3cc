// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/train/data/readers/input_file.h"

namespace tributary {

// The files of a source, in their order. Each is opened when its turn comes, so
// that a source may have more files than a process can hold open.
class InputFiles {
 public:
  explicit InputFiles(std::vector<std::string> paths)
      : names_(std::move(paths)) {}
  template <typename Paths>
  static InputFiles Of(const Paths& paths) {
    return InputFiles(std::vector<std::string>(paths.begin(), paths.end()));
  }
  // One file that consists of bytes in memory, gzip or plain.
  static InputFiles OverBytes(std::string name, std::string bytes) {
    InputFiles files({std::move(name)});
    files.bytes_ = std::make_shared<const std::string>(std::move(bytes));
    return files;
  }

  // Returns only the file with this number.
  InputFiles Only(size_t file) const {
    InputFiles only({names_[file]});
    only.bytes_ = bytes_;
    return only;
  }

  size_t size() const { return names_.size(); }
  const std::string& name(size_t file) const { return names_[file]; }
  // The first file, for messages about all of them; empty when there is none.
  std::string name() const { return names_.empty() ? "" : names_[0]; }

  // Opens a file at its beginning. Errors as in InputFile::Open.
  absl::StatusOr<std::unique_ptr<InputFile>> Open(size_t file) const {
    return bytes_ == nullptr ? InputFile::Open(names_[file])
                             : InputFile::OverBytes(names_[file], *bytes_);
  }

 private:
  std::vector<std::string> names_;
  std::shared_ptr<const std::string> bytes_;  // null: names_ are paths
};

}  // namespace tributary
