#include <filesystem>
#include <string>

#include "common/job/job_file.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using google::protobuf::util::MessageDifferencer;

// Debian's dataset-fashion-mnist, which one example reads.
constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";

TEST(ExampleJobsTest, EveryExampleIsAGoodJobAndReadsBackFromItsResolvedForm) {
  int num_examples = 0;
  const std::string folder = std::string(TRIBUTARY_SOURCE_DIR) + "/examples";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    ++num_examples;
    if (entry.path().filename() == "fashion-mnist.yaml" &&
        !std::filesystem::exists(kFashionMnist)) {
      continue;
    }
    const auto job = ReadJobFile(entry.path().string());
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->name(), entry.path().stem().string());
    const auto again = ParseJob(JobToYaml(*job), "elsewhere/job.yaml");
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << JobToYaml(*job);
    EXPECT_TRUE(MessageDifferencer::Equals(*job, *again)) << JobToYaml(*job);
  }
  EXPECT_EQ(num_examples, 6);
}

}  // namespace
}  // namespace tributary
