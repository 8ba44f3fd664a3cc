// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/job_file.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/testing/paths.h"

namespace tributary {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::util::MessageDifferencer;

// Debian's dataset-fashion-mnist, which three examples read.
constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";

TEST(ExampleJobsTest, EveryExampleIsAGoodJobAndReadsBackFromItsResolvedForm) {
  int num_examples = 0;
  const std::string folder = testing::SourceFile("examples");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    ++num_examples;
    const std::string name = entry.path().filename().string();
    if ((name == "fashion-mnist.yaml" || name == "fashion-mnist-cnn.yaml" ||
         name == "fashion-mnist-resnet.yaml") &&
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
  EXPECT_EQ(num_examples, 9);
}

// Every message below the job.
void CollectTypes(const Descriptor& type, std::set<const Descriptor*>* types) {
  if (!types->insert(&type).second) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const Descriptor* below = type.field(i)->message_type();
    if (below != nullptr) CollectTypes(*below, types);
  }
}

TEST(JobFileReferenceTest, EveryFieldOfTheSchemaIsExplained) {
  std::string text;
  for (const char* page : {"docs/job-file.md", "docs/data.md"}) {
    std::ifstream stream(testing::SourceFile(page));
    text.append(std::istreambuf_iterator<char>(stream), {});
  }
  std::set<const Descriptor*> types;
  CollectTypes(*v1::JobSpec::descriptor(), &types);
  for (const Descriptor* type : types) {
    for (int i = 0; i < type->field_count(); ++i) {
      const std::string name = absl::StrCat("`", type->field(i)->name(), "`");
      EXPECT_NE(text.find(name), std::string::npos)
          << type->field(i)->full_name();
    }
  }
}

}  // namespace
}  // namespace tributary
