// SPDX-License-Identifier: Apache-2.0
#include "kernels/nccl_arithmetic.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tributary {
namespace {

TEST(NcclArithmeticTest, NamesVersionSettingsAndLinks) {
  EXPECT_EQ(DescribeNccl(22703, {}, ""), ", NCCL 2.27.3");
  EXPECT_EQ(DescribeNccl(
                21403, {"PATH=/bin", "NCCL_PROTO=LL", "NCCL_ALGO=Ring"}, "0x0"),
            ", NCCL 2.14.3, NCCL_ALGO=Ring, NCCL_PROTO=LL, links 0x0");
}

// A rank on another machine has other names and writes another log, and yet
// adds in the same order.
TEST(NcclArithmeticTest, NamesAndLogsDoNotCount) {
  EXPECT_EQ(DescribeNccl(22703,
                         {"NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=/tmp/log",
                          "NCCL_HOSTID=a", "NCCL_SOCKET_IFNAME=eth0",
                          "# NCCL_ALGO=Tree", "XNCCL_ALGO=Ring"},
                         ""),
            ", NCCL 2.27.3");
}

TEST(NcclArithmeticTest, ManySettingsBecomeAHash) {
  const std::string path(600, 'a');
  const std::string text = DescribeNccl(
      22703, {"NCCL_TOPO_FILE=" + path, "NCCL_NVLS_ENABLE=0"}, "0");
  EXPECT_LT(text.size(), 80u);
  EXPECT_NE(text.find(", 2 settings of NCCL ("), std::string::npos) << text;
  EXPECT_NE(
      text,
      DescribeNccl(
          22703, {"NCCL_TOPO_FILE=" + path + "b", "NCCL_NVLS_ENABLE=0"}, "0"));
}

}  // namespace
}  // namespace tributary
