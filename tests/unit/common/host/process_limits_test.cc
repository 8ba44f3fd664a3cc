// SPDX-License-Identifier: Apache-2.0
#include "common/host/process_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

// Sets a limit of this process; the destructor restores the old one.
class WithLimit {
 public:
  WithLimit(int resource, rlim_t value) : resource_(resource) {
    getrlimit(resource_, &before_);
    const rlimit now = {value, before_.rlim_max};
    EXPECT_EQ(setrlimit(resource_, &now), 0);
  }
  ~WithLimit() { setrlimit(resource_, &before_); }
  rlim_t hardest() const { return before_.rlim_max; }

 private:
  const int resource_;
  rlimit before_{};
};

TEST(ProcessLimitsTest, FilesAreRaisedToWhatIsAllowed) {
  const WithLimit low(RLIMIT_NOFILE, 64);
  EXPECT_EQ(FileLimit(), 64u);
  PrepareProcessLimits();
  EXPECT_EQ(FileLimit(), low.hardest());
}

TEST(ProcessLimitsTest, ALimitThatIsTooLowIsNamed) {
  const WithLimit low(RLIMIT_NOFILE, 64);
  EXPECT_TRUE(CheckProcessLimits(48).ok());
  EXPECT_THAT(std::string(CheckProcessLimits(49).message()),
              HasSubstr("64 files and connections open (ulimit -n), three "
                        "quarters of them for this job, which needs 49"));
}

TEST(ProcessLimitsTest, TooLittleAddressSpaceIsNamed) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  if (before.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "it is limited already";
  absl::Status status;
  {
    const WithLimit low(RLIMIT_AS, rlim_t{1000} << 20);
    status = CheckProcessLimits(1);
  }
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("1000 MiB of addresses (ulimit -v)"));
}

}  // namespace
}  // namespace tributary
