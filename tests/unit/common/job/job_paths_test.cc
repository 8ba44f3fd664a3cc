#include <filesystem>
#include <fstream>
#include <string>

#include "common/job/job_file.h"
#include "common/job/yaml_tree.h"
#include "gtest/gtest.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

class JobPathsTest : public testing::Test {
 protected:
  JobPathsTest()
      : folder_(testing::TempDir() + "job_paths_" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~JobPathsTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }
  std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }

  const std::filesystem::path folder_;
};

TEST_F(JobPathsTest, AMissingJobFileIsNotFound) {
  const auto job = ReadJobFile(Path("job.yaml"));
  EXPECT_EQ(job.status(),
            absl::NotFoundError(Path("job.yaml") + ": no such job file"));
}

TEST_F(JobPathsTest, AFolderIsNoJobFile) {
  const auto job = ReadJobFile(folder_.string());
  EXPECT_EQ(job.status().message(),
            folder_.string() + ": wants a job file, got a folder");
}

TEST_F(JobPathsTest, AnEmptyFileLacksAllThatAJobNeeds) {
  const auto job = ReadJobFile(Write("job.yaml", ""));
  EXPECT_EQ(job.status().message(), Path("job.yaml") + ": model is missing");
}

TEST_F(JobPathsTest, AHugeFileIsRefused) {
  const auto job =
      ReadJobFile(Write("job.yaml", std::string(kMaxYamlBytes + 1, '#')));
  EXPECT_EQ(job.status().message(),
            Path("job.yaml") + ": wants at most 1048576 bytes");
}

TEST_F(JobPathsTest, TheLargestFileIsRead) {
  const std::string text = JobWith(0, "");
  EXPECT_TRUE(
      ReadJobFile(Write("job.yaml",
                        text + std::string(kMaxYamlBytes - text.size(), '#')))
          .ok());
}

TEST_F(JobPathsTest, PathsStartAtTheJobFileAndBecomeAbsolute) {
  Write("x.npy", "");
  Write("y.npy", "");
  const auto job = ReadJobFile(Write(
      "job.yaml",
      JobWith(7, "  train: {npy: {features: ./x.npy, labels: a/../y.npy}}")));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->data().train().npy().features(), Path("x.npy"));
  EXPECT_EQ(job->data().train().npy().labels(), Path("y.npy"));
}

TEST_F(JobPathsTest, AMissingDataFileNamesANearOne) {
  Write("features.npy", "");
  const auto job = ReadJobFile(
      Write("job.yaml",
            JobWith(7, "  train: {npy: {features: feature.npy, labels: x}}")));
  EXPECT_EQ(job.status().message(),
            Path("job.yaml") +
                ":7: data.train.npy.features wants a file, but " +
                Path("feature.npy") +
                " does not exist; did you mean \"features.npy\"?");
}

TEST_F(JobPathsTest, AFolderIsNoDataFile) {
  const auto job = ReadJobFile(
      Write("job.yaml",
            JobWith(7, "  train: {csv: {path: ., columns: {label: y}}}")));
  EXPECT_EQ(job.status().message(),
            Path("job.yaml") + ":7: data.train.csv.path wants a file, but " +
                folder_.string() + "/ is a folder");
}

TEST_F(JobPathsTest, TestDataIsReadAsTrainingDataIs) {
  Write("a.tsv", "");
  const auto job = ReadJobFile(
      Write("job.yaml", JobWith(7,
                                "  train: {csv: {path: a.tsv, header: false, "
                                "columns: {label: 0}, normalize: "
                                "standardize}}\n"
                                "  test: {csv: {path: a.tsv, rows: 10}}")));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->data().test().csv().columns().label(), "0");
  EXPECT_FALSE(job->data().test().csv().header());
  EXPECT_EQ(job->data().test().csv().delimiter(), "\t");
  EXPECT_TRUE(job->data().test().csv().normalize().standardize());
}

}  // namespace
}  // namespace tributary
