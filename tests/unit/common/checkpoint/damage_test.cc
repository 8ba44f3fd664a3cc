// SPDX-License-Identifier: Apache-2.0
// Flipped bits and cut files are found wherever they are, by every reader.
#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <unistd.h>

#include <random>
#include <regex>

#include "common/base/check.h"
#include "common/checkpoint/files/paged_file.h"
#include "common/checkpoint/files/shard_file.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/planned_checkpoint.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::CheckpointModel;
namespace fs = std::filesystem;

constexpr int kFlips = 2000;
constexpr uint64_t kSeed = 20;

struct DamagedPlace {
  std::string path;
  int64_t byte = -1;
};

// The file and the byte that a sentence names.
DamagedPlace PlaceIn(const absl::Status& status) {
  static const std::regex pattern("^(.*\\.ckpt): byte ([0-9]+): .*");
  const std::string text(status.message());
  std::smatch match;
  if (!std::regex_match(text, match, pattern)) return {};
  return {match[1], std::stoll(match[2])};
}

class DamageTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 2));
    for (const auto& entry : fs::directory_iterator(checkpoint_)) {
      files_.push_back(entry.path().string());
    }
    std::sort(files_.begin(), files_.end());
    ASSERT_EQ(files_.size(), 3u);
  }

  // Reads everything, as a resume on three servers does.
  absl::Status ReadAll() const {
    auto reader = CheckpointReader::Open(checkpoint_);
    if (!reader.ok()) return reader.status();
    const auto checkpoint = PlannedCheckpoint::Create(
        *std::move(reader), model_.parameters, model_.state_names);
    if (!checkpoint.ok()) return checkpoint.status();
    for (int shard = 0; shard < plan_.num_shards(); ++shard) {
      for (const Block& block : plan_.blocks(shard)) {
        std::vector<float> values(3 * block.size);
        float* data = values.data();
        const absl::Status status =
            (*checkpoint)
                ->ReadBlock(block, data,
                            {data + block.size, data + 2 * block.size});
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }
  // The one damage that `tributary checkpoint verify` finds.
  absl::Status VerifyAll() const {
    absl::Status found;
    for (const FileReport& report : VerifyCheckpoint(checkpoint_)) {
      if (report.status.ok()) continue;
      EXPECT_TRUE(found.ok()) << found << " and " << report.status;
      found = report.status;
    }
    return found;
  }

  const CheckpointModel model_ = {};
  const PartitionPlan plan_ = model_.Plan(3);
  const std::string checkpoint_ = Path("step-000000000020");
  std::vector<std::string> files_;
};

// Inverts one bit of a file; the destructor inverts it back.
class FlippedBit {
 public:
  FlippedBit(const std::string& path, int64_t bit)
      : fd_(open(path.c_str(), O_RDWR)), bit_(bit) {
    Flip();
  }
  ~FlippedBit() {
    Flip();
    close(fd_);
  }

 private:
  void Flip() const {
    char byte;
    TRIBUTARY_CHECK(pread(fd_, &byte, 1, bit_ / 8) == 1);
    byte = static_cast<char>(byte ^ 1 << bit_ % 8);
    TRIBUTARY_CHECK(pwrite(fd_, &byte, 1, bit_ / 8) == 1);
  }

  const int fd_;
  const int64_t bit_;
};

TEST_F(DamageTest, EverySingleFlippedBitIsFoundInItsPage) {
  TRIBUTARY_EXPECT_OK(ReadAll());
  TRIBUTARY_EXPECT_OK(VerifyAll());
  std::vector<int64_t> ends;  // of the files laid one behind the other
  for (const std::string& file : files_) {
    ends.push_back((ends.empty() ? 0 : ends.back()) +
                   static_cast<int64_t>(fs::file_size(file)));
  }
  std::mt19937_64 random(kSeed);
  int found = 0;
  for (int i = 0; i < kFlips; ++i) {
    int64_t bit = static_cast<int64_t>(random() % (8 * ends.back()));
    size_t file = 0;
    while (bit >= 8 * ends[file]) ++file;
    if (file > 0) bit -= 8 * ends[file - 1];
    const FlippedBit flipped(files_[file], bit);
    for (const absl::Status& status : {ReadAll(), VerifyAll()}) {
      const DamagedPlace place = PlaceIn(status);
      const bool right = status.code() == absl::StatusCode::kDataLoss &&
                         place.path == files_[file] &&
                         place.byte == bit / 8 / kPageBytes * kPageBytes;
      EXPECT_TRUE(right) << "bit " << bit << " of " << files_[file] << ": "
                         << status;
      found += right;
    }
  }
  EXPECT_EQ(found, 2 * kFlips);
  TRIBUTARY_EXPECT_OK(VerifyAll());
}

TEST_F(DamageTest, AFileCutAtAny4KiBIsFoundWhereItEnds) {
  int cuts = 0;
  for (const std::string& file : files_) {
    const std::string whole = Read(fs::relative(file, folder()).string());
    for (size_t size = 0; size < whole.size(); size += 4096) {
      fs::resize_file(file, size);
      for (const absl::Status& status : {ReadAll(), VerifyAll()}) {
        const DamagedPlace place = PlaceIn(status);
        EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
        EXPECT_EQ(place.path, file) << status;
        EXPECT_GE(place.byte, 0) << status;
        EXPECT_LE(place.byte, static_cast<int64_t>(size)) << status;
      }
      Write(fs::relative(file, folder()).string(), whole);
      ++cuts;
    }
  }
  TRIBUTARY_EXPECT_OK(VerifyAll());
  EXPECT_GT(cuts, 100);
}

// One sector reads as zeros, another one as a sector from elsewhere.
TEST_F(DamageTest, ALostSectorIsFound) {
  const std::string name = fs::relative(files_[1], folder()).string();
  const std::string whole = Read(name);
  for (size_t at = 0; at + 8192 <= whole.size(); at += 4096) {
    for (const std::string& sector :
         {std::string(4096, '\0'), whole.substr(at + 4096, 4096)}) {
      if (whole.compare(at, 4096, sector) == 0) continue;
      std::string damaged = whole;
      damaged.replace(at, 4096, sector);
      Write(name, damaged);
      EXPECT_EQ(PlaceIn(ReadAll()).byte,
                static_cast<int64_t>(at) / kPageBytes * kPageBytes);
    }
  }
}

std::string ContentOf(const std::string& file) {
  std::string content;
  for (size_t at = 0; at < file.size(); at += kPageBytes) {
    const std::string page = file.substr(at, kPageBytes);
    content += page.substr(0, page.size() - 4);
  }
  return content;
}

// A forger can compute the checksums, too. Then the file must be consistent in
// itself, or be refused; the sanitizers watch what is read of it.
TEST_F(DamageTest, ForgedFilesAreRefusedOrHoldWhatTheySay) {
  const std::string file =
      ContentOf(Read(fs::relative(files_[1], folder()).string()));
  const std::string manifest =
      ContentOf(Read(fs::relative(files_[0], folder()).string()));
  const google::protobuf::LogSilencer silence;  // names that are not UTF-8
  std::mt19937_64 random(kSeed);
  int refused = 0;
  for (int i = 0; i < kFlips; ++i) {
    std::string content = i % 2 == 0 ? file : manifest;
    const size_t front = std::min<size_t>(content.size(), 400);
    for (uint64_t n = random() % 3 + 1; n > 0; --n) {
      content[random() % front] = static_cast<char>(random());
    }
    const std::string forged = ToPages(content);
    if (i % 2 == 1) {
      refused += !ParseManifest("x", forged).ok();
      continue;
    }
    const auto shard = ShardFile::Parse("x", forged);
    refused += !shard.ok();
    if (!shard.ok()) continue;
    PageBuffer buffer;
    for (const ShardFile::Range& range : (*shard)->ranges()) {
      std::vector<float> values(range.end - range.begin);
      const int last = static_cast<int>((*shard)->header().state_names.size());
      TRIBUTARY_EXPECT_OK((*shard)->Read(range, last, range.begin,
                                         absl::MakeSpan(values), &buffer));
    }
  }
  EXPECT_GT(refused, kFlips / 4);
  EXPECT_LT(refused, kFlips);
}

}  // namespace
}  // namespace tributary
