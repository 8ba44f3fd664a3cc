// SPDX-License-Identifier: Apache-2.0
// `tributary checkpoint` and `tributary export` on checkpoints of a small
// model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint_directory.h"
#include "common/files/safetensors.h"
#include "common/files/sha256.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::CheckpointModel;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::kSoon;
using ::testing::StartsWith;
namespace fs = std::filesystem;

constexpr char kStep20[] = "run/checkpoints/step-000000000020";
constexpr char kStep40[] = "run/checkpoints/step-000000000040";

struct Result {
  int exit_code;
  std::string output;
};

class CheckpointCommandTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    TRIBUTARY_EXPECT_OK(model_.Write(Path("run/checkpoints"), 20, 2));
    TRIBUTARY_EXPECT_OK(model_.Write(Path("run/checkpoints"), 40, 3));
  }
  Result Run(std::vector<std::string> words) const {
    words.insert(words.begin(), testing::Program("tributary"));
    auto process =
        testing::RunningProcess::Start({.command = words, .folder = folder()});
    const int exit_code = process->Wait(kSoon);
    return {exit_code, process->output()};
  }
  // Flips a bit of this byte.
  void Damage(const std::string& file, size_t byte) const {
    std::string bytes = Read(file);
    bytes[byte] ^= 4;
    Write(file, bytes);
  }
  std::string WeightsSha256() const {
    std::vector<std::vector<float>> tensors;
    std::vector<const float*> data;
    for (size_t p = 0; p < model_.parameters.size(); ++p) {
      tensors.push_back(model_.Tensor(0, static_cast<int>(p)));
    }
    for (const auto& tensor : tensors) data.push_back(tensor.data());
    return tributary::WeightsSha256(model_.parameters, data);
  }

  const CheckpointModel model_ = {};
};

TEST_F(CheckpointCommandTest, ExportOverwritesNoFileOfTheRun) {
  Write("run/job.yaml", "name: small\n");
  Write("run/metrics.jsonl", "");
  const std::string shard =
      fs::directory_iterator(Path(kStep20))->path().string();
  for (const std::string& output : {Path("run/job.yaml"), shard}) {
    for (const char* source : {"run", kStep40, kStep20}) {
      const Result refused = Run({"export", source, output});
      EXPECT_EQ(refused.exit_code, 2);
      EXPECT_THAT(refused.output, HasSubstr("give OUTPUT another name"));
    }
  }
  EXPECT_EQ(Read("run/job.yaml"), "name: small\n");
}

TEST_F(CheckpointCommandTest, EveryHelpShowsAnExampleAndTheExitCodes) {
  for (const std::string command : {"list", "verify", "newest", "diff"}) {
    const Result help = Run({"checkpoint", command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.output, HasSubstr("  tributary checkpoint " + command));
    EXPECT_THAT(help.output, HasSubstr("Exit codes"));
  }
  EXPECT_THAT(Run({"checkpoint", "--help"}).output,
              HasSubstr("tributary checkpoint verify"));
  EXPECT_THAT(Run({"export", "--help"}).output,
              HasSubstr("tributary export run model.safetensors"));
  EXPECT_THAT(Run({"--help"}).output, HasSubstr("checkpoint"));
}

TEST_F(CheckpointCommandTest, ListShowsTheNewestFirst) {
  ASSERT_TRUE(OpenCheckpointFolder(Path("run/checkpoints"), 60).ok());
  for (const char* directory : {"run", "run/", "run/checkpoints"}) {
    const Result list = Run({"checkpoint", "list", directory});
    EXPECT_EQ(list.exit_code, 0) << list.output;
    const size_t half = list.output.find("\n      60  incomplete: ");
    const size_t newest = list.output.find("\n      40      5        3  ");
    const size_t oldest = list.output.find("\n      20      3        2  ");
    EXPECT_LT(half, newest) << list.output;
    EXPECT_LT(newest, oldest) << list.output;
    EXPECT_NE(oldest, std::string::npos) << list.output;
  }
  fs::create_directory(Path("empty"));
  const Result empty = Run({"checkpoint", "list", "empty"});
  EXPECT_EQ(empty.exit_code, 0);
  EXPECT_EQ(empty.output, "empty: no checkpoints\n");
}

TEST_F(CheckpointCommandTest, VerifyIsQuietAboutWholeOnes) {
  const Result all = Run({"checkpoint", "verify", "run"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_THAT(all.output,
              StartsWith(std::string(kStep40) + ": intact, 4 files, "));
  EXPECT_THAT(all.output,
              HasSubstr(std::string(kStep20) + ": intact, 3 files, "));
  EXPECT_EQ(Run({"checkpoint", "verify", kStep20}).exit_code, 0);
}

TEST_F(CheckpointCommandTest, VerifyNamesFileAndByteOfADamage) {
  const std::string file = std::string(kStep20) + "/shard-001-of-002.ckpt";
  Damage(file, 70'000);
  Damage(file, 140'000);
  for (const std::string place : {"run", kStep20}) {
    const Result verify = Run({"checkpoint", "verify", place});
    EXPECT_EQ(verify.exit_code, 1);
    EXPECT_THAT(verify.output,
                HasSubstr(std::string(kStep20) + ": damaged\n  " + file +
                          ": byte 65536: the page from here to byte 131071 is "
                          "damaged"));
    EXPECT_THAT(verify.output, HasSubstr("; 1 more page of "));
  }
  EXPECT_EQ(Run({"checkpoint", "verify", kStep40}).exit_code, 0);
}

TEST_F(CheckpointCommandTest, VerifyNamesADamagedManifest) {
  const std::string manifest = std::string(kStep20) + "/manifest.ckpt";
  Damage(manifest, 40);
  const Result verify = Run({"checkpoint", "verify", "run"});
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_THAT(verify.output, HasSubstr("\n  " + manifest + ": byte 0: "));
}

TEST_F(CheckpointCommandTest, AFolderWithoutAManifestIsNoCheckpoint) {
  fs::remove(Path(std::string(kStep40) + "/manifest.ckpt"));
  const Result all = Run({"checkpoint", "verify", "run"});
  EXPECT_EQ(all.exit_code, 0) << "step 20 is there and whole";
  EXPECT_THAT(all.output,
              HasSubstr(std::string(kStep40) + ": incomplete, passed over\n"));
  EXPECT_EQ(Run({"checkpoint", "verify", kStep40}).exit_code, 1);
  EXPECT_THAT(Run({"train", "--resume", "run", "--dry-run"}).output,
              HasSubstr(std::string(kStep40) +
                        " has no manifest and is passed over; going on from " +
                        kStep20))
      << "it is said when an older one is taken";
  fs::remove(Path(std::string(kStep20) + "/manifest.ckpt"));
  const Result none = Run({"checkpoint", "verify", "run"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.output, HasSubstr("holds no complete checkpoint"));
  EXPECT_EQ(Run({"export", "run", "x"}).exit_code, 2);
}

// It is refused, and the message names the checkpoint before it.
TEST_F(CheckpointCommandTest, ADamagedNewestOneIsNotPassedOver) {
  const std::string manifest = std::string(kStep40) + "/manifest.ckpt";
  const std::string shard = std::string(kStep40) + "/shard-002-of-003.ckpt";
  const std::string hint = "; the newest intact checkpoint before it is " +
                           std::string(kStep20) + ": name it to take that one";
  const auto expect_refused = [&](const std::string& reason) {
    for (const std::string place : {"run", "run/checkpoints", kStep40}) {
      const Result refused =
          Run({"train", "--resume", place, "--run-dir", "resumed"});
      EXPECT_EQ(refused.exit_code, 2) << refused.output;
      EXPECT_THAT(refused.output, HasSubstr(reason));
      EXPECT_THAT(refused.output, HasSubstr(hint));
    }
    EXPECT_FALSE(fs::exists(Path("resumed")));
  };
  const std::string good_manifest = Read(manifest);
  const std::string good_shard = Read(shard);
  Damage(manifest, 40);
  expect_refused(manifest + ": byte 0: ");
  EXPECT_EQ(Run({"export", "run", "x"}).exit_code, 2);
  EXPECT_EQ(Run({"checkpoint", "diff", "run", kStep20}).exit_code, 2);
  Write(manifest, good_manifest);
  Damage(shard, 70'000);
  expect_refused(shard + ": byte 65536: ");
  Write(shard, good_shard.substr(0, 1000));
  expect_refused(shard + ": byte 1000: the file is cut short");
  fs::remove(Path(shard));
  expect_refused(shard + ": open: No such file");
}

TEST_F(CheckpointCommandTest, NewestPassesOverWhatIsNotWholeAndSaysSo) {
  EXPECT_EQ(Run({"checkpoint", "newest", "run"}).output,
            std::string(kStep40) + "\n");
  const std::string shard = std::string(kStep40) + "/shard-002-of-003.ckpt";
  Damage(shard, 70'000);
  Result newest = Run({"checkpoint", "newest", "gone", "run"});
  EXPECT_EQ(newest.exit_code, 0);
  EXPECT_THAT(newest.output, StartsWith("tributary: gone: open: No such"));
  EXPECT_THAT(newest.output,
              HasSubstr(std::string(kStep40) + " is passed over: " + shard +
                        ": byte 65536: "));
  EXPECT_THAT(newest.output, EndsWith("\n" + std::string(kStep20) + "\n"));
  fs::remove(Path(std::string(kStep20) + "/manifest.ckpt"));
  newest = Run({"checkpoint", "newest", "run"});
  EXPECT_EQ(newest.exit_code, 1);
  EXPECT_THAT(newest.output, EndsWith("holds no intact checkpoint\n"));
}

// Runs the batch script of Slurm after two earlier starts, with a `tributary`
// that only prints how it is asked to train.
TEST_F(CheckpointCommandTest, ARequeuedJobGoesOnFromTheNewestWholeCheckpoint) {
  fs::create_directories(Path("runs/7"));
  fs::rename(Path("run"), Path("runs/7/0"));
  fs::create_directories(Path("runs/7/1/checkpoints"));  // no checkpoint yet
  fs::create_directories(Path("bin"));
  Write("bin/tributary", "#!/bin/sh\nif [ $1 = checkpoint ]; then exec '" +
                             testing::Program("tributary") +
                             "' \"$@\"; fi\necho \"asked: $*\"\n");
  fs::permissions(Path("bin/tributary"), fs::perms::owner_all);
  const auto start_again = [&] {
    auto script = testing::RunningProcess::Start(
        {.command = {"/bin/sh", "-c",
                     "PATH=$PWD/bin:$PATH SLURM_JOB_ID=7 "
                     "SLURM_RESTART_COUNT=2 exec bash '" +
                         testing::SourceFile("deploy/slurm/tributary.sbatch") +
                         "' job.yaml"},
         .folder = folder()});
    EXPECT_EQ(script->Wait(kSoon), 0) << script->output();
    return script->output();
  };
  const std::string run = "runs/7/0/checkpoints/step-0000000000";
  EXPECT_THAT(start_again(), HasSubstr("asked: train --resume " + run + "40 "));
  Damage(run + "40/shard-002-of-003.ckpt", 70'000);
  std::string output = start_again();
  EXPECT_THAT(output, HasSubstr("asked: train --resume " + run + "20 "));
  EXPECT_THAT(output, HasSubstr(run + "40 is passed over: "));
  Damage(run + "20/manifest.ckpt", 40);
  output = start_again();
  EXPECT_THAT(output, HasSubstr("asked: train job.yaml --launch slurm"));
  EXPECT_THAT(output, HasSubstr("begins anew"));
}

TEST_F(CheckpointCommandTest, VerifyMissesADeletedFile) {
  const std::string file = std::string(kStep20) + "/shard-000-of-002.ckpt";
  fs::remove(Path(file));
  for (const std::string place : {"run", kStep20}) {
    const Result verify = Run({"checkpoint", "verify", place});
    EXPECT_EQ(verify.exit_code, 1);
    EXPECT_THAT(verify.output, HasSubstr("\n  " + file + ": open: No such"));
  }
}

TEST_F(CheckpointCommandTest, DiffHasTheExitCodesOfDiff) {
  TRIBUTARY_EXPECT_OK(model_.Write(Path("other/checkpoints"), 40, 1));
  const Result equal = Run({"checkpoint", "diff", "run", "other"});
  EXPECT_EQ(equal.exit_code, 0) << equal.output;
  EXPECT_THAT(equal.output, StartsWith("A: " + std::string(kStep40) +
                                       "\nB: other/checkpoints/"
                                       "step-000000000040\n"
                                       "servers: 3 and 1\n"));
  EXPECT_THAT(equal.output, HasSubstr("\nequal\n"));

  CheckpointModel other;
  other.offset = 0.5;
  TRIBUTARY_EXPECT_OK(other.Write(Path("other/checkpoints"), 40, 1));
  const Result different = Run({"checkpoint", "diff", "run", "other"});
  EXPECT_EQ(different.exit_code, 1) << different.output;
  EXPECT_THAT(different.output,
              ContainsRegex("\n4\\.scale +1 +1 +0\\.5 +1\\.25e-06\n"));
  EXPECT_EQ(Run({"checkpoint", "diff", kStep20, kStep40}).exit_code, 1);

  Damage("other/checkpoints/step-000000000040/shard-000-of-001.ckpt", 200'000);
  const Result damaged = Run({"checkpoint", "diff", "run", "other"});
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_THAT(damaged.output, HasSubstr("shard-000-of-001.ckpt: byte 196608"));
}

TEST_F(CheckpointCommandTest, ExportGivesTheWeightsWithTheirSha256) {
  const Result done = Run({"export", "run", "model.safetensors"});
  ASSERT_EQ(done.exit_code, 0) << done.output;
  EXPECT_EQ(done.output,
            "model.safetensors: 5 tensors of " + std::string(kStep40) +
                ", step 40\nweights sha256: " + WeightsSha256() + "\n");
  const auto tensors =
      ReadSafetensors(Path("model.safetensors"), model_.parameters);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  for (size_t p = 0; p < tensors->size(); ++p) {
    EXPECT_EQ((*tensors)[p], model_.Tensor(0, static_cast<int>(p)));
  }
}

TEST_F(CheckpointCommandTest, ExportGivesTheOptimizersTensorsOnRequest) {
  const Result done =
      Run({"export", kStep20, "all.safetensors", "--optimizer-state"});
  ASSERT_EQ(done.exit_code, 0) << done.output;
  EXPECT_THAT(done.output, HasSubstr("15 tensors of "));
  EXPECT_THAT(done.output, HasSubstr(WeightsSha256()));
  ParameterSpecs specs = model_.parameters;
  for (const std::string& state : model_.state_names) {
    for (const ParameterSpec& spec : model_.parameters) {
      specs.push_back({"optimizer." + state + "." + spec.name, spec.shape});
    }
  }
  const auto tensors = ReadSafetensors(Path("all.safetensors"), specs);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  for (int tensor = 0; tensor < 3; ++tensor) {
    for (int p = 0; p < 5; ++p) {
      EXPECT_EQ((*tensors)[tensor * 5 + p], model_.Tensor(tensor, p));
    }
  }
}

TEST_F(CheckpointCommandTest, ADamagedCheckpointIsNotExported) {
  const std::string file = std::string(kStep20) + "/shard-001-of-002.ckpt";
  Damage(file, 70'000);
  Write("model.safetensors", "old");
  const Result refused = Run({"export", kStep20, "model.safetensors"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output,
              StartsWith("tributary: " + file + ": byte 65536: "));
  EXPECT_THAT(refused.output, HasSubstr("; no checkpoint before it is intact"));
  EXPECT_EQ(Read("model.safetensors"), "old");
  EXPECT_EQ(NumFiles(), 2) << "run and model.safetensors";
}

TEST_F(CheckpointCommandTest, WrongCommandLinesAreOneSentence) {
  struct Wrong {
    std::vector<std::string> words;
    std::string message;
  };
  Write("file", "");
  for (const Wrong& wrong : std::vector<Wrong>{
           {{"checkpoint"}, "give a command (try tributary checkpoint --help)"},
           {{"checkpoint", "lsit"},
            "there is no command \"lsit\"; did you mean list? (try tributary "
            "checkpoint --help)"},
           {{"checkpoint", "list"}, "(try tributary checkpoint list --help)"},
           {{"checkpoint", "list", "no"}, "no: open: No such file"},
           {{"checkpoint", "verify", "no"}, "no: open: No such file"},
           {{"checkpoint", "verify", "file"},
            "file is a file; name a run directory"},
           {{"checkpoint", "diff", "run"}, "B is required"},
           {{"checkpoint", "diff", "run", "no"}, "no: open: No such file"},
           {{"export", "run"}, "OUTPUT is required"},
           {{"export", "no", "x"}, "no: open: No such file"},
           {{"export", "run", "x", "--all"}, "--all"}}) {
    const Result refused = Run(wrong.words);
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_THAT(refused.output, StartsWith("tributary: "));
    EXPECT_THAT(refused.output, HasSubstr(wrong.message));
    EXPECT_EQ(std::count(refused.output.begin(), refused.output.end(), '\n'), 1)
        << refused.output;
  }
  EXPECT_EQ(Run({"export", "run", "no/x"}).exit_code, 1);
}

}  // namespace
}  // namespace tributary
