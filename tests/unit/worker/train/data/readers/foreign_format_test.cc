// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/foreign_format.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"
#include "worker/train/data/readers/csv/csv_rows.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

constexpr char kSmallTable[] = "a,b,y\n1,2,3\n";

// The characters of a text in ASCII as two bytes.
std::string Utf16(const std::string& text, bool big_endian) {
  std::string bytes;
  for (const char c : text) {
    bytes += big_endian ? '\0' : c;
    bytes += big_endian ? c : '\0';
  }
  return bytes;
}

std::string ErrorOfFile(const std::string& name, const std::string& bytes) {
  const auto file = MemoryFile(name, bytes);
  CsvRows rows(file.get(), ',');
  std::vector<absl::string_view> fields;
  return std::string(rows.Next(&fields).status().message());
}

TEST(ForeignFormatTest, FilesOfOtherProgramsAreNamed) {
  const std::string binary("\x01\x00\xFF", 3);
  const std::pair<std::string, const char*> files[] = {
      {"\xFF\xFE" + Utf16(kSmallTable, false), "UTF-16"},
      {"\xFE\xFF" + Utf16(kSmallTable, true), "UTF-16"},
      {Utf16(kSmallTable, false), "UTF-16"},
      {Utf16(kSmallTable, true), "UTF-16"},
      {std::string("\xFF\xFE\0\0a\0\0\0", 8), "UTF-32"},
      {"BZh91AY&SY" + binary, "bzip2"},
      {std::string("\xFD\x37zXZ\0\0", 7), "xz data"},
      {"\x28\xB5\x2F\xFD" + binary, "zstd"},
      {"\x04\x22\x4D\x18" + binary, "lz4"},
      {"\x1F\x9D" + binary, "compressed data"},
      {"PK\x03\x04\x14" + binary, "zip archive"},
      {"7z\xBC\xAF\x27\x1C" + binary, "7z"},
      {"\xD0\xCF\x11\xE0\xA1\xB1\x1A" + binary, "Excel"},
      {"PAR1\x15\x04" + binary, "Parquet"},
      {std::string("ARROW1\0\0", 8), "Arrow"},
      {"FEA1" + binary, "Feather"},
      {"ORC" + binary, "ORC"},
      {"\x89HDF\r\n\x1A\n" + binary, "HDF5"},
      {std::string("SQLite format 3\0", 16), "SQLite"},
      {"\x93NUMPY" + binary, "NPY"},
      {"{\"a\": 1}\n", "JSON"},
      {"[{\"a\": 1}]\n", "JSON"},
      {"<!DOCTYPE html>\n", "HTML"},
      {"version https://git-lfs.github.com/spec/v1\n", "Git LFS"},
      {std::string("abc\0\0\0\0\1", 8), "binary data"}};
  for (const auto& [bytes, format] : files) {
    EXPECT_THAT(ErrorOfFile("t.csv", bytes),
                HasSubstr("t.csv: wanted text in UTF-8, plain or packed by "
                          "gzip, but this is "))
        << format;
    EXPECT_THAT(ErrorOfFile("t.csv", bytes), HasSubstr(format));
    // The content decides, whatever the name is and though gzip is unpacked.
    EXPECT_THAT(ErrorOfFile("t.csv.gz", Gzip(bytes)), HasSubstr(format));
  }
}

TEST(ForeignFormatTest, TablesAreNotTakenForOtherFiles) {
  for (const std::string text :
       {"a,b,y\n", "PAR1,PAR2\n1,2\n", "FEA1,FEA2,y\n", "ORC,ELF\n", "BZh,y\n",
        "ARROW1\n", "größe,y\n",
        "\xEF\xBB\xBF"
        "a,y\n",
        "7z,y\n", "PK,y\n", "{a},y\n", "version,y\n", "D\xFCsseldorf,1\n",
        "a\tb\r\n"}) {
    EXPECT_EQ(ErrorOfFile("t.csv", text), "") << text;
    EXPECT_EQ(ErrorOfFile("t.xz", Gzip(text)), "") << text;
  }
}

TEST(ForeignFormatTest, ACommandConvertsTheFile) {
  const std::string xz("\xFD\x37zXZ\0\0", 7);
  const auto command = [](const std::string& name, const std::string& bytes) {
    const std::string error = ErrorOfFile(name, bytes);
    return error.substr(error.find("as in: ") + 7);
  };
  EXPECT_EQ(command("d/t.csv.xz", xz), "xz -dc < d/t.csv.xz > d/t.csv");
  EXPECT_EQ(command("d/t.bin", xz), "xz -dc < d/t.bin > d/new-t.bin");
  EXPECT_EQ(command("my t's.csv", "\xFF\xFE" + Utf16("a", false)),
            "iconv -f UTF-16 -t UTF-8 < 'my t'\\''s.csv' > 'new-my "
            "t'\\''s.csv'");
  EXPECT_EQ(command("t.csv.gz", Gzip(Utf16("a,b", false))),
            "gzip -dc < t.csv.gz | iconv -f UTF-16LE -t UTF-8 > new-t.csv");
  EXPECT_EQ(command("t.csv.gz.gz", Gzip(Gzip("a,b"))),
            "gzip -dc < t.csv.gz.gz | gzip -dc > t.csv");
  EXPECT_EQ(command("t.csv", "a,b\r1,2\r"),
            "tr '\\r' '\\n' < t.csv > new-t.csv");
}

}  // namespace
}  // namespace tributary
