// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint/checkpoint_text.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

CheckpointInfo Complete() {
  CheckpointInfo info;
  info.path = "run/checkpoints/step-000000000040";
  info.step = 40;
  info.bytes = 3 << 20;
  info.manifest.set_name("digits");
  info.manifest.set_epoch(2);
  info.manifest.add_files();
  info.manifest.add_files();
  info.manifest.set_created_micros(1'767'323'045'000'000);
  return info;
}

TEST(CheckpointTextTest, ListShowsOneLineEach) {
  CheckpointInfo half;
  half.step = 30;
  half.status = absl::NotFoundError("step/manifest.ckpt: open: no such file");
  EXPECT_EQ(ListText({Complete(), half}),
            "    step  epoch  servers        size  written               job\n"
            "      40      2        2     3.0 MiB  2026-01-02T03:04:05Z  "
            "\"digits\"\n"
            "      30  incomplete: step/manifest.ckpt: open: no such file\n");
}

TEST(CheckpointTextTest, VerifyIsOneLineWhenAllIsWhole) {
  EXPECT_EQ(VerifyText("step", {{"step/manifest.ckpt", 0, absl::OkStatus()},
                                {"step/shard", 2048, absl::OkStatus()}}),
            "step: intact, 2 files, 2.0 KiB\n");
}

TEST(CheckpointTextTest, VerifyShowsEveryDamage) {
  EXPECT_EQ(
      VerifyText("step",
                 {{"step/manifest.ckpt", 0, absl::OkStatus()},
                  {"step/a", 1, absl::DataLossError("step/a: byte 0: x")},
                  {"step/b", 1, absl::DataLossError("step/b: byte 9: y")}}),
      "step: damaged\n  step/a: byte 0: x\n  step/b: byte 9: y\n");
}

}  // namespace
}  // namespace tributary
