// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/manifest.h"

#include <google/protobuf/util/message_differencer.h>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/files/paged_file.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::CheckpointModel;
using testing::StatusIs;

class ManifestTest : public testing::TemporaryFolderTest {
 protected:
  // The bytes of a good manifest's file.
  std::string File() const {
    TRIBUTARY_EXPECT_OK(CheckpointModel().Write(folder(), 20, 2));
    return Read("step-000000000020/manifest.ckpt");
  }
};

TEST_F(ManifestTest, GivesBackWhatWasWritten) {
  TRIBUTARY_EXPECT_OK(CheckpointModel().Write(folder(), 20, 2));
  const auto manifest = ReadManifest(Path("step-000000000020"));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  v1::CheckpointManifest wanted = CheckpointModel().Manifest(20);
  *wanted.mutable_files() = manifest->files();
  EXPECT_TRUE(MessageDifferencer::Equals(*manifest, wanted));
  ASSERT_EQ(manifest->files_size(), 2);
  for (const v1::CheckpointFile& file : manifest->files()) {
    EXPECT_EQ(file.bytes(), Read("step-000000000020/" + file.name()).size());
  }
}

// Whoever can write files can compute every other checksum anew.
TEST_F(ManifestTest, AKeyFindsWhatSomebodyHasChanged) {
  constexpr char kFolder[] = "step-000000000020";
  CheckpointModel model;
  model.key = std::string(32, 'k');
  TRIBUTARY_EXPECT_OK(model.Write(folder(), 20, 2));
  const auto manifest = ReadManifest(Path(kFolder), model.key);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->files(0).sha256().size(), 32u);
  EXPECT_TRUE(ReadManifest(Path(kFolder)).ok()) << "readers need no key";

  const auto refused = StatusIs(absl::StatusCode::kDataLoss,
                                "the keyed checksum is missing or wrong");
  EXPECT_THAT(ReadManifest(Path(kFolder), std::string(32, 'K')), refused);
  v1::CheckpointManifest changed = *manifest;
  changed.set_data_checksum(changed.data_checksum() + 1);
  const auto write = [&](const std::string& message) {
    auto writer = PagedFileWriter::Create(ManifestPath(Path(kFolder)),
                                          PagedFileKind::kManifest, message, 0);
    ASSERT_TRUE(writer.ok()) << writer.status();
    TRIBUTARY_EXPECT_OK((*writer)->Commit());
  };
  write(changed.SerializeAsString());  // with the checksum of the unchanged one
  EXPECT_TRUE(ReadManifest(Path(kFolder)).ok());
  EXPECT_THAT(ReadManifest(Path(kFolder), model.key), refused);
  write(SerializeManifest(*manifest, ""));
  EXPECT_THAT(ReadManifest(Path(kFolder), model.key), refused);
  write(SerializeManifest(*manifest, model.key) +
        SerializeManifest(*manifest, ""));  // protobuf merges the two
  EXPECT_THAT(ReadManifest(Path(kFolder), model.key), refused);
  write(SerializeManifest(*manifest, model.key));
  EXPECT_TRUE(ReadManifest(Path(kFolder), model.key).ok());
}

TEST_F(ManifestTest, AKeyWantsTheSha256OfEveryFile) {
  TRIBUTARY_EXPECT_OK(CheckpointModel().Write(folder(), 20, 2));
  const auto manifest = ReadManifest(Path("step-000000000020"));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_THAT(WriteManifest(folder(), *manifest, std::string(32, 'k')),
              StatusIs(absl::StatusCode::kInvalidArgument, "has no sha256"));
}

TEST_F(ManifestTest, EveryFlippedBitIsFoundAtItsPlace) {
  std::string file = File();
  TRIBUTARY_EXPECT_OK(ParseManifest("x", file));
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    file[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_THAT(ParseManifest("x", file),
                StatusIs(absl::StatusCode::kDataLoss, "x: byte 0: the page"))
        << "bit " << bit;
    file[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
}

TEST_F(ManifestTest, EveryTruncationIsFound) {
  const std::string file = File();
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(ParseManifest("x", file.substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss, "x: byte "))
        << size;
  }
}

TEST_F(ManifestTest, AFolderWithoutOneIsNoCheckpoint) {
  EXPECT_EQ(ReadManifest(folder()).status(),
            absl::NotFoundError(folder() + "/manifest.ckpt: open: No such "
                                           "file or directory"));
}

TEST_F(ManifestTest, ContradictionsAreRefused) {
  v1::CheckpointManifest good = CheckpointModel().Manifest(20);
  good.add_files()->set_name("shard-000-of-001.ckpt");
  TRIBUTARY_EXPECT_OK(CheckManifest(good));
  const auto expect = [](const v1::CheckpointManifest& wrong,
                         const std::string& text) {
    EXPECT_THAT(CheckManifest(wrong),
                StatusIs(absl::StatusCode::kInvalidArgument, text));
  };
  v1::CheckpointManifest wrong = good;
  wrong.set_step(-1);
  expect(wrong, "wants steps of 0 or more, got step -1 of 40");
  wrong = good;
  wrong.mutable_workers(1)->set_steps(-3);
  expect(wrong, "wants steps of 0 or more for rank 1, got -3");
  wrong = good;
  wrong.clear_files();
  expect(wrong, "wants 1 to 256 files, got 0");
  wrong = good;
  wrong.mutable_files(0)->set_name("../../etc/passwd");
  expect(wrong, "wants file shard-000-of-001.ckpt, got \"../../etc/passwd\"");
  wrong = good;
  wrong.mutable_parameters(0)->set_shape(0, 0);
  expect(wrong, "parameter 0.weight has extent 0");
  wrong = good;
  wrong.set_state_names(1, "exp_avg");
  expect(wrong, "got \"exp_avg\" twice");
}

}  // namespace
}  // namespace tributary
