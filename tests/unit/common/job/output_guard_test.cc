// SPDX-License-Identifier: Apache-2.0
#include "common/job/files/output_guard.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/testing/paths.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;
using testing::StatusIs;

class OutputGuardTest : public testing::TemporaryFolderTest {
 protected:
  OutputGuardTest() {
    fs::create_directories(Path("run/checkpoints/step-000000000001"));
    Write("train.csv", "x,y\n1,2\n");
    Write("test.csv", "x,y\n1,2\n");
    Write("start.safetensors", "");
    Write("run/job.yaml",
          absl::StrCat("name: guarded\n"
                       "model:\n"
                       "  sequential: [linear: {in: 1, out: 1}]\n"
                       "  initialize_from: ",
                       Path("start.safetensors"),
                       "\ndata:\n"
                       "  train: {csv: {path: ",
                       Path("train.csv"),
                       ", columns: {label: y}}}\n"
                       "  test: {csv: {path: ",
                       Path("test.csv"),
                       "}}\n"
                       "  batch_size: 1\n"
                       "training: {steps: 1, loss: mse, optimizer: {sgd: "
                       "{learning_rate: 0.1}}}\n"));
    for (const char* file :
         {"metrics.jsonl", "summary.json", "weights.safetensors",
          "events.out.tfevents.1", "checkpoints/step-000000000001/shard-0",
          "predictions.csv"}) {
      Write(absl::StrCat("run/", file), "content");
    }
  }
  absl::Status Check(const std::string& output) const {
    return CheckOutput({.path = Path(output),
                        .option = "--output",
                        .read = {Path("input.csv"), ""},
                        .runs = {Path("run")}});
  }
};

TEST_F(OutputGuardTest, NewFilesAndEarlierResultsMayBeWritten) {
  TRIBUTARY_EXPECT_OK(Check("new.csv"));
  TRIBUTARY_EXPECT_OK(Check("run/new.csv"));
  TRIBUTARY_EXPECT_OK(Check("run/predictions.csv"));
  TRIBUTARY_EXPECT_OK(Check("run/best.safetensors"));  // the run has kept none
  Write("other.csv", "");
  TRIBUTARY_EXPECT_OK(Check("other.csv"));
}

TEST_F(OutputGuardTest, AFileThatTheCommandReadsIsKept) {
  Write("input.csv", "");
  EXPECT_THAT(Check("input.csv"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "input.csv is one of the files to read, and would be "
                       "lost: give --output another name"));
}

TEST_F(OutputGuardTest, TheFilesOfTheJobAreKept) {
  for (const char* file : {"train.csv", "test.csv", "start.safetensors"}) {
    EXPECT_THAT(Check(file),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat(file, " is one of the files that ",
                                      Path("run"), "/job.yaml names")));
  }
  fs::create_symlink(Path("train.csv"), Path("symbolic.csv"));
  fs::create_hard_link(Path("train.csv"), Path("hard.csv"));
  EXPECT_FALSE(Check("symbolic.csv").ok());
  EXPECT_FALSE(Check("hard.csv").ok());
}

TEST_F(OutputGuardTest, TheFilesOfARunAreKept) {
  for (const char* file :
       {"job.yaml", "metrics.jsonl", "summary.json", "weights.safetensors",
        "events.out.tfevents.1", "checkpoints/step-000000000001/shard-0"}) {
    const std::string path = absl::StrCat("run/", file);
    EXPECT_THAT(Check(path),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat(" is a file of the run directory ",
                                      Path("run"))));
    // The same holds for a command that reads no run.
    EXPECT_THAT(
        CheckOutput({.path = Path(path), .option = "--json", .read = {}}),
        StatusIs(absl::StatusCode::kInvalidArgument, "--json"));
  }
}

// The guard and the first table of the documentation name the same files.
TEST_F(OutputGuardTest, EveryDocumentedFileOfARunIsGuarded) {
  std::ifstream document(testing::SourceFile("docs/run-directory.md"));
  const std::regex row(R"(\| `([^`*]+)\*?` \|.*)");
  int files = 0;
  for (std::string line; std::getline(document, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, row)) {
      if (files > 0) break;
      continue;
    }
    std::string name = absl::StrCat("run/", found[1].str());
    if (absl::EndsWith(name, "/")) {
      fs::create_directories(Path(name));
      absl::StrAppend(&name, "inside");
    }
    if (!fs::exists(Path(name))) Write(name, "");
    EXPECT_THAT(CheckOutput({Path(name), "--output", {}, {Path("run")}}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "is a file of the run directory"))
        << name;
    ++files;
  }
  EXPECT_GT(files, 15);
}

}  // namespace
}  // namespace tributary
