// SPDX-License-Identifier: Apache-2.0
#include "common/status/shell_text.h"

#include "gtest/gtest.h"

namespace tributary {
namespace {

TEST(ShellTextTest, QuotesWordsThatNeedIt) {
  EXPECT_EQ(ShellText({"tributary", "train", "--resume", "runs/a-1.5"}),
            "tributary train --resume runs/a-1.5");
  EXPECT_EQ(ShellText({"train.py", "--name", "my run", ""}),
            "train.py --name 'my run' ''");
  EXPECT_EQ(ShellText({"it's", "$HOME", "a;b", "*"}),
            "'it'\\''s' '$HOME' 'a;b' '*'");
}

}  // namespace
}  // namespace tributary
