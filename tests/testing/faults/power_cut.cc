// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/faults/power_cut.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "tests/testing/faults/file_key.h"
#include "tests/testing/paths.h"

namespace tributary::testing {
namespace {

namespace fs = std::filesystem;

using Entries = std::vector<std::pair<std::string, std::string>>;  // key, name

Entries EntriesOf(const std::string& folder) {
  Entries entries;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string key = FileKey(entry.path());
    if (!key.empty()) entries.emplace_back(key, entry.path().filename());
  }
  return entries;
}

Entries SyncedEntries(const std::string& copy) {
  Entries entries;
  std::ifstream lines(copy);
  for (std::string key, name;
       lines >> key && lines.get() == ' ' && std::getline(lines, name);) {
    entries.emplace_back(key, name);
  }
  return entries;
}

class Survivor {
 public:
  Survivor(const std::string& folder, const std::string& copies,
           const PowerCut::Survivors& kept)
      : copies_(copies), kept_(kept) {
    present_[FileKey(folder)] = folder;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      present_[FileKey(entry.path())] = entry.path();
    }
  }

  // Writes what is left of the file or folder `key`.
  void Write(const std::string& key, const std::string& path) const {
    const auto present = present_.find(key);
    const bool exists = present != present_.end();
    const std::string copy = copies_ + "/" + key;
    if (key[0] == 'd') {
      fs::create_directory(path);
      const bool present_names = kept_.names && exists;
      for (const auto& [entry, name] :
           present_names ? EntriesOf(present->second) : SyncedEntries(copy)) {
        Write(entry, path + "/" + name);
      }
    } else if (kept_.bytes && exists) {
      fs::copy_file(present->second, path);
    } else if (fs::exists(copy)) {
      fs::copy_file(copy, path);
    } else {
      std::ofstream empty(path);
    }
  }

 private:
  const std::string copies_;
  const PowerCut::Survivors kept_;
  std::map<std::string, std::string> present_;  // key: path
};

}  // namespace

PowerCut::PowerCut(std::string folder, std::string copies)
    : folder_(std::move(folder)), copies_(std::move(copies)) {
  fs::create_directories(copies_);
}

std::vector<std::string> PowerCut::Environment() const {
  return {"LD_PRELOAD=" + Program("libsynced_disk.so"),
          "TRIBUTARY_SYNCED_FOLDER=" + folder_, "TRIBUTARY_SYNCED=" + copies_,
          // The address sanitizer's runtime wants to be loaded first.
          "ASAN_OPTIONS=verify_asan_link_order=0"};
}

void PowerCut::Happen(const Survivors& survivors) const {
  const std::string left = folder_ + ".left";
  Survivor(folder_, copies_, survivors).Write(FileKey(folder_), left);
  fs::remove_all(folder_);
  fs::rename(left, folder_);
}

}  // namespace tributary::testing
