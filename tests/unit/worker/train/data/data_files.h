// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/text_format.h>
#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/testing/paths.h"
#include "tributary/v1/data.pb.h"
#include "worker/train/data/dataset.h"
#include "worker/train/data/readers/input_file.h"

namespace tributary {

// `bytes` as a gzip member.
inline std::string Gzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED,
                         16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

// An IDX file of bytes with these extents.
inline std::string Idx(const std::vector<uint32_t>& extents,
                       const std::string& payload) {
  std::string bytes = {0, 0, 8, static_cast<char>(extents.size())};
  for (uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<char>(extent >> shift));
    }
  }
  return bytes + payload;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

// An NPY file as numpy.save writes it: the header padded to 64 bytes.
inline std::string Npy(const std::string& dict, const std::string& payload,
                       int version = 1) {
  const size_t length_bytes = version == 1 ? 2 : 4;
  std::string header = dict;
  while ((8 + length_bytes + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (size_t i = 0; i < length_bytes; ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i));
  }
  return bytes + header + payload;
}

inline std::string NpyDict(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr +
         "', 'fortran_order': False, 'shape': " + shape + ", }";
}

inline std::unique_ptr<InputFile> MemoryFile(const std::string& name,
                                             const std::string& bytes) {
  auto file = InputFile::OverBytes(name, bytes);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

// Writes a file below the test's own temporary folder; returns its path.
inline std::string WriteFile(const std::string& name,
                             const std::string& bytes) {
  const std::string path =
      ::testing::TempDir() + "/" +
      ::testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
      name;
  FILE* file = std::fopen(path.c_str(), "wb");
  EXPECT_NE(file, nullptr) << path;
  EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  EXPECT_EQ(std::fclose(file), 0);
  return path;
}

// Parses protobuf's text format.
inline v1::DataSpec Spec(const std::string& text) {
  v1::DataSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

inline std::string ErrorOf(const absl::StatusOr<RawData>& data) {
  EXPECT_FALSE(data.ok());
  return std::string(data.status().message());
}

// The features of all rows.
inline std::vector<float> NumbersOf(const Dataset& data) {
  std::vector<int64_t> rows(data.rows());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  Batch batch;
  data.Gather(rows, &batch);
  return {batch.features.data(), batch.features.data() + batch.features.size()};
}

inline std::string Example(const std::string& name) {
  return testing::SourceFile("examples/data/" + name);
}

}  // namespace tributary
