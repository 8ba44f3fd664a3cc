// SPDX-License-Identifier: Apache-2.0
// Rows on disk are the rows in memory.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/open_data.h"
#include "worker/train/data/readers/counter_random.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<TrainTest> Open(const std::string& sources, TargetKind kind,
                               bool stream) {
  v1::DataSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      sources + (stream ? " stream { buffer_bytes: 1048576 }" : ""), &spec));
  return OpenData(spec, kind);
}

void ExpectSameRows(const Dataset& disk, const Dataset& memory) {
  ASSERT_TRUE(disk.on_disk());
  EXPECT_FALSE(memory.on_disk());
  ASSERT_EQ(disk.rows(), memory.rows());
  EXPECT_EQ(disk.checksum(), memory.checksum());
  EXPECT_EQ(disk.feature_shape(), memory.feature_shape());
  EXPECT_EQ(disk.target_width(), memory.target_width());
  EXPECT_EQ(disk.num_tokens(), memory.num_tokens());
  EXPECT_EQ(disk.class_names(), memory.class_names());
  // Backwards, with neighbours, gaps and repetitions.
  std::vector<int64_t> rows;
  for (int64_t row = memory.rows() - 1; row >= 0; row -= 1 + row % 3) {
    rows.push_back(row);
    if (row % 5 == 0) rows.push_back(memory.rows() - 1 - row);
  }
  Batch got, wanted;
  memory.Gather(rows, &wanted);
  const absl::Status status = disk.Fetch(rows, &got);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(got.rows, wanted.rows);
  EXPECT_EQ(
      std::vector<float>(got.features.data(),
                         got.features.data() + got.features.size()),
      std::vector<float>(wanted.features.data(),
                         wanted.features.data() + wanted.features.size()));
  EXPECT_EQ(got.labels, wanted.labels);
  EXPECT_EQ(got.targets, wanted.targets);
}

void ExpectSameData(const std::string& sources, TargetKind kind) {
  const auto memory = Open(sources, kind, /*stream=*/false);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const auto disk = Open(sources, kind, /*stream=*/true);
  ASSERT_TRUE(disk.ok()) << disk.status();
  EXPECT_EQ(disk->preprocessing.SerializeAsString(),
            memory->preprocessing.SerializeAsString());
  EXPECT_EQ(disk->warnings, memory->warnings);
  ExpectSameRows(*disk->train, *memory->train);
  ASSERT_EQ(disk->test == nullptr, memory->test == nullptr);
  if (memory->test != nullptr) ExpectSameRows(*disk->test, *memory->test);
}

std::string Numbers(const std::string& type, int rows, int width) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" +
         std::to_string(rows) + ", " + std::to_string(width) + "), }";
}

template <typename T>
std::vector<T> Counting(int count, T step) {
  std::vector<T> values(count);
  for (int i = 0; i < count; ++i) values[i] = static_cast<T>(i % 251) * step;
  return values;
}

TEST(StoredDataTest, PackedImages) {
  ExpectSameData(
      "train { idx { images: '" +
          Example("fashion-train6000-images-idx3-ubyte.gz") + "' labels: '" +
          Example("fashion-train6000-labels-idx1-ubyte.gz") +
          "' normalize { standardize: true } first_row: 7 rows: 3000 } } "
          "test { idx { images: '" +
          Example("fashion-t10k1000-images-idx3-ubyte.gz") + "' labels: '" +
          Example("fashion-t10k1000-labels-idx1-ubyte.gz") + "' } }",
      TargetKind::kClass);
}

TEST(StoredDataTest, ArraysOfEveryTypeInSeveralFiles) {
  const auto sources = [](const std::string& type, const std::string& payload,
                          const std::string& label_type,
                          const std::string& labels, bool packed) {
    const auto file = [&](const std::string& name, const std::string& bytes) {
      return WriteFile(name, packed ? Gzip(bytes) : bytes);
    };
    std::string features, targets;
    for (int i = 0; i < 3; ++i) {
      features += " features: '" +
                  file("stored_x" + std::to_string(i),
                       Npy(Numbers(type, 40, 5), payload)) +
                  "'";
      targets += " labels: '" +
                 file("stored_y" + std::to_string(i),
                      Npy(Numbers(label_type, 40, 1), labels)) +
                 "'";
    }
    return "train { npy {" + features + targets +
           " first_row: 30 rows: 70 normalize { standardize: true } } }";
  };
  const std::string classes = BytesOf(Counting<int32_t>(40, 1));
  const std::string reals = BytesOf(Counting<double>(40, .25));
  for (bool packed : {false, true}) {
    ExpectSameData(sources("<f4", BytesOf(Counting<float>(200, .5f)), "<i4",
                           classes, packed),
                   TargetKind::kClass);
    ExpectSameData(sources("<f8", BytesOf(Counting<double>(200, .1)), "<f8",
                           reals, packed),
                   TargetKind::kReal);
    ExpectSameData(sources("<i4", BytesOf(Counting<int32_t>(200, 3)), "<f8",
                           reals, packed),
                   TargetKind::kReal);
    ExpectSameData(sources("<i8", BytesOf(Counting<int64_t>(200, 3)), "<i4",
                           classes, packed),
                   TargetKind::kClass);
    ExpectSameData(sources("|u1", BytesOf(Counting<uint8_t>(200, 1)), "<i4",
                           classes, packed),
                   TargetKind::kClass);
    ExpectSameData(sources("<i2", BytesOf(Counting<int16_t>(200, 3)), "<u2",
                           BytesOf(Counting<uint16_t>(40, 1)), packed),
                   TargetKind::kClass);
    ExpectSameData(sources("<u8", BytesOf(Counting<uint64_t>(200, 1 << 20)),
                           "<u4", BytesOf(Counting<uint32_t>(40, 1)), packed),
                   TargetKind::kClass);
    ExpectSameData(sources("|i1", BytesOf(Counting<int8_t>(200, 1)), "|b1",
                           std::string(40, 1), packed),
                   TargetKind::kBinary);
  }
}

TEST(StoredDataTest, FilesOfOneSourceMayHaveDifferentTypes) {
  const auto file = [](const std::string& field, const std::string& bytes) {
    return field.substr(0, field.size() - 1) + ": '" + WriteFile(field, bytes) +
           "' ";
  };
  const std::string bytes = BytesOf(Counting<uint8_t>(16, 1));
  const std::string doubles = BytesOf(Counting<double>(18, .125));
  const std::string sources =
      "train { npy { first_row: 3 " +
      file("features0", Npy(Numbers("|u1", 8, 2), bytes)) +
      file("features1", Gzip(Npy(Numbers("<f8", 9, 2), doubles))) +
      file("labels0", Npy(Numbers("|u1", 8, 1), bytes.substr(0, 8))) +
      file("labels1", Npy(Numbers("<f8", 9, 1), std::string(72, 0))) + "} }";
  ExpectSameData(sources, TargetKind::kClass);
  const auto data = Open(sources, TargetKind::kClass, /*stream=*/false);
  Batch batch;
  data->train->Gather({4, 13}, &batch);
  const float* features = batch.features.data();
  EXPECT_THAT(std::vector<float>(features, features + 4),
              ElementsAre(14, 15, 2, 2.125f));
  EXPECT_THAT(batch.labels, ElementsAre(7, 0));
}

TEST(StoredDataTest, TextsWithAnyStride) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "ab\xC3\xA9 cd"[i * i % 7];
  text.erase(
      std::remove_if(text.begin(), text.end(), [](char c) { return c < 0; }),
      text.end());
  text += "\xC3\xA9";
  const std::string path = WriteFile("stored_text", Gzip(text));
  for (int stride : {1, 3, 8, 9, 20}) {
    ExpectSameData("train { text { path: '" + path +
                       "' length: 8 stride: " + std::to_string(stride) +
                       " end: 0.8 first_row: 2 } } test { text { path: '" +
                       path + "' length: 8 begin: 0.8 } }",
                   TargetKind::kClass);
  }
}

// More rows than the reader keeps before it writes them.
std::string Table(int rows, bool holes, int seed) {
  std::string text = "age,job,mass,animal,town\n";
  for (int i = 0; i < rows; ++i) {
    const auto pick = [&](int column, int of) {
      return static_cast<int>(HashBits(seed, i, column) % of);
    };
    const bool hole = holes && pick(9, 10) == 0;
    text += (hole ? "" : std::to_string(pick(1, 90))) + "," +
            (holes && pick(8, 10) == 0 ? "NA"
                                       : "job" + std::to_string(pick(2, 12))) +
            "," + std::to_string(pick(3, 1000)) + ".25," +
            (pick(4, 3) == 0   ? "cat"
             : pick(4, 3) == 1 ? "dog"
                               : "cow") +
            ",t" + std::to_string(pick(5, 30 + seed)) + "\n";
  }
  return text;
}

TEST(StoredDataTest, TablesWithCategoriesAndMissingValues) {
  const std::string one = WriteFile("one.csv", Table(5000, true, 1));
  const std::string two = WriteFile("two.csv", Gzip(Table(4200, true, 2)));
  const std::string test = WriteFile("test.csv", Table(600, true, 3));
  const std::string columns =
      "header: true delimiter: ',' columns { label: 'animal' numeric: 'age' "
      "numeric: 'mass' categorical: 'job' categorical: 'town' } "
      "normalize { standardize: true } ";
  for (const char* missing :
       {"mean: true", "median: true", "constant: -1", "skip: true"}) {
    const std::string holes =
        "missing { " + std::string(missing) +
        " texts: 'NA' } classes: 'dog' classes: 'cow' classes: 'cat' ";
    ExpectSameData("train { csv { path: '" + one + "' path: '" + two + "' " +
                       columns + holes +
                       "first_row: 13 } } test { csv { path: '" + test + "' " +
                       columns + holes + "} }",
                   TargetKind::kClass);
  }
}

TEST(StoredDataTest, TablesOfNumbersAlone) {
  std::string text;
  for (int i = 0; i < 5000; ++i) {
    text += std::to_string(i % 2) + ";" + std::to_string(i * .125) + "\n";
  }
  const std::string source =
      "train { csv { path: '" + WriteFile("numbers.csv", text) +
      "' header: false delimiter: ';' columns { label: '";
  ExpectSameData(source + "1' } } }", TargetKind::kReal);
  ExpectSameData(source + "0' } } }", TargetKind::kBinary);
  ExpectSameData(source + "0' categorical: '1' } } }", TargetKind::kBinary);
}

// The error when one value of an array of two files is spoilt.
std::string ErrorOfSpoiled(const std::string& features,
                           const std::string& labels) {
  const auto data = Open(
      "train { npy { features: '" + features + "' labels: '" + labels + "' } }",
      TargetKind::kClass, /*stream=*/true);
  EXPECT_FALSE(data.ok());
  return std::string(data.status().message());
}

TEST(StoredDataTest, WrongValuesAreNamedWithFileAndRow) {
  std::vector<float> values(20, 1);
  values[13] = std::numeric_limits<float>::infinity();
  const std::string infinite =
      WriteFile("infinite.npy", Npy(Numbers("<f4", 10, 2), BytesOf(values)));
  const std::string good = WriteFile(
      "good.npy", Npy(Numbers("<f4", 10, 2), BytesOf(Counting<float>(20, 1))));
  const std::string labels =
      WriteFile("labels.npy",
                Npy(Numbers("<i4", 10, 1), BytesOf(Counting<int32_t>(10, 1))));
  const std::string negative =
      WriteFile("negative.npy",
                Npy(Numbers("<i4", 10, 1), BytesOf(Counting<int32_t>(10, -1))));
  EXPECT_THAT(ErrorOfSpoiled(infinite, labels),
              HasSubstr("infinite.npy: row 6, feature 1: wanted a finite "
                        "float32, got inf"));
  EXPECT_THAT(ErrorOfSpoiled(good, negative),
              HasSubstr("negative.npy: row 1: wanted a class (an integer from "
                        "0) as label, got -1"));
}

TEST(StoredDataTest, ArraysThatDoNotFitTogetherAreRefused) {
  const std::string x = WriteFile(
      "x.npy", Npy(Numbers("<f4", 10, 2), BytesOf(Counting<float>(20, 1))));
  const std::string longer =
      WriteFile("longer.npy",
                Npy(Numbers("<f4", 10, 2), BytesOf(Counting<float>(21, 1))));
  const std::string cut = WriteFile(
      "cut.npy", Npy(Numbers("<f4", 10, 2), BytesOf(Counting<float>(19, 1))));
  const std::string y = WriteFile(
      "y.npy", Npy(Numbers("<i4", 10, 1), BytesOf(Counting<int32_t>(10, 1))));
  const std::string short_y =
      WriteFile("short_y.npy",
                Npy(Numbers("<i4", 9, 1), BytesOf(Counting<int32_t>(9, 1))));
  EXPECT_THAT(ErrorOfSpoiled(x, short_y),
              HasSubstr("x.npy holds 10 rows, but " + short_y + " holds 9"));
  EXPECT_THAT(ErrorOfSpoiled(longer, y),
              HasSubstr("the header announces 10 rows of 8 bytes, but 84 bytes "
                        "follow"));
  EXPECT_THAT(ErrorOfSpoiled(cut, y), HasSubstr("cut.npy: offset"));
  EXPECT_THAT(
      ErrorOfSpoiled(WriteFile("packed_cut.npy",
                               Gzip(Npy(Numbers("<f4", 10, 2),
                                        BytesOf(Counting<float>(19, 1))))),
                     y),
      HasSubstr("wanted 80 bytes of rows, but the data ends after 76"));
  EXPECT_THAT(
      ErrorOfSpoiled(WriteFile("packed_longer.npy",
                               Gzip(Npy(Numbers("<f4", 10, 2),
                                        BytesOf(Counting<float>(21, 1))))),
                     y),
      HasSubstr("more follows than the header announces"));
}

// A source of ten rows of two numbers, opened from disk.
struct ChangingFiles {
  std::string x = WriteFile(
      "x.npy", Npy(Numbers("<f4", 10, 2), BytesOf(Counting<float>(20, 1))));
  std::string y = WriteFile(
      "y.npy", Npy(Numbers("<i4", 10, 1), BytesOf(Counting<int32_t>(10, 1))));

  TrainTest Open() const {
    auto data = tributary::Open(
        "train { npy { features: '" + x + "' labels: '" + y + "' } }",
        TargetKind::kClass, /*stream=*/true);
    EXPECT_TRUE(data.ok()) << data.status();
    return *std::move(data);
  }
};

TEST(StoredDataTest, AFileThatBecomesShorterIsAnError) {
  const ChangingFiles files;
  const TrainTest data = files.Open();
  ASSERT_EQ(truncate(files.x.c_str(), 150), 0);
  Batch batch;
  const absl::Status status = data.train->Fetch({3}, &batch);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("x.npy: offset 152: wanted 8 bytes, but the file "
                        "ends after 0; it was longer when the job began"));
  // The file's first rows are still there, but not the whole set.
  EXPECT_TRUE(absl::IsDataLoss(data.train->Fetch({0, 1}, &batch)));
}

// Sets the time of the last change, so that no test depends on the clock.
void SetModified(const std::string& path, int64_t seconds) {
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type(std::chrono::seconds(seconds)));
}

// Overwrites bytes of a file in place.
void Overwrite(const std::string& path, int64_t offset,
               const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file << bytes;
  file.close();
  SetModified(path, 1'000'000'000);
}

constexpr int64_t kNpyHeaderBytes = 128;

TEST(StoredDataTest, OtherValuesInAFileAreAnErrorThatNamesTheRows) {
  const ChangingFiles files;
  const TrainTest data = files.Open();
  Batch batch;
  ASSERT_TRUE(data.train->Fetch({3}, &batch).ok());
  Overwrite(files.x, kNpyHeaderBytes + 9 * 8, BytesOf<float>({7}));
  // The error comes although the rows that are read have not changed.
  const absl::Status status = data.train->Fetch({3}, &batch);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(std::string(status.message()),
            files.x +
                ": rows 0 to 9 have changed since the job began to read them; "
                "start it again with files that nothing writes to");
}

TEST(StoredDataTest, OtherLabelsInAFileAreNoticedToo) {
  const ChangingFiles files;
  const TrainTest data = files.Open();
  Overwrite(files.y, kNpyHeaderBytes, BytesOf<int32_t>({5}));
  Batch batch;
  const absl::Status status = data.train->Fetch({3}, &batch);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("y.npy: rows 0 to 9 have changed"));
}

TEST(StoredDataTest, AFileMayBeTouchedRenamedAndReplaced) {
  const ChangingFiles files;
  const TrainTest data = files.Open();
  Batch batch;
  SetModified(files.x, 1'000'000'000);
  ASSERT_TRUE(data.train->Fetch({3}, &batch).ok());
  // The same values once more.
  Overwrite(files.x, kNpyHeaderBytes, BytesOf<float>({0, 1}));
  ASSERT_TRUE(data.train->Fetch({3}, &batch).ok());
  std::filesystem::rename(files.x, files.x + ".old");
  WriteFile("x.npy", "another file");
  ASSERT_TRUE(data.train->Fetch({3}, &batch).ok());
  EXPECT_EQ(batch.features.data()[0], 6);
}

}  // namespace
}  // namespace tributary
