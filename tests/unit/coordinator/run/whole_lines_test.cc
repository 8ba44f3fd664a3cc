// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/whole_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

class WholeLinesTest : public testing::TemporaryFolderTest {};

// Whatever is damaged, a reader gets no more than a mebibyte at once.
TEST_F(WholeLinesTest, ALineThatIsTooLongIsLeftOutUnread) {
  constexpr size_t kMiB = 1 << 20;
  std::vector<size_t> sizes;
  const LineReader read = [&sizes](absl::string_view line) {
    sizes.push_back(line.size());
    return true;
  };
  for (const size_t size : {kMiB + 1, kMiB + kMiB / 2, 3 * kMiB, 5 * kMiB}) {
    sizes.clear();
    const std::string path = Write(
        "lines", absl::StrCat("first\n", std::string(size, 'x'), "\nlast\n"));
    const BadLines bad = ForEachLine(path, 0, read);
    EXPECT_THAT(sizes, ElementsAre(5, 4)) << size;
    EXPECT_EQ(bad.count, 1) << size;
    EXPECT_EQ(bad.first_byte, 6u) << size;
  }
  sizes.clear();
  const std::string path =
      Write("lines", absl::StrCat("first\n", std::string(kMiB, 'x'), "\n"));
  EXPECT_EQ(ForEachLine(path, 0, read).count, 0);
  EXPECT_THAT(sizes, ElementsAre(5, kMiB));
}

}  // namespace
}  // namespace tributary
