// SPDX-License-Identifier: Apache-2.0
// Measures one server's checkpoint of a 64 MB model under Adam (192 MB on
// disk): writing it, with a sync to disk, and reading it. The limits of both
// are a plain write and fsync of as many bytes, and their checksum alone. The
// directory is $TMPDIR, or /tmp.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/checkpoint/files/shard_file.h"
#include "common/files/atomic_file.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

constexpr int64_t kElements = 16 << 20;
constexpr int64_t kBytes = 3 * 4 * kElements;

// A directory that is deleted with the object.
class Folder {
 public:
  Folder()
      : path_((std::filesystem::temp_directory_path() /
               ("checkpoint_bench." + std::to_string(getpid())))
                  .string()) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

struct Model {
  ShardFileHeader header = {
      {.parameters = {{"0.weight", {4096, kElements / 4096}}},
       .state_names = {"exp_avg", "exp_avg_sq"}}};
  PartitionPlan plan =
      PartitionPlan::Create(header.parameters, 1, 4 << 20).value();
  std::vector<float> values = std::vector<float>(kElements, 1.5f);

  std::vector<BlockImage> Images() const {
    std::vector<BlockImage> images;
    for (const Block& block : plan.blocks(0)) {
      const float* at = values.data() + block.offset;
      images.push_back({.slices = block.slices,
                        .weights = at,
                        .state = {at, at},
                        .num_elements = block.size});
    }
    return images;
  }
};

// The argument 1 adds the digests for a manifest with a keyed checksum.
void BM_WriteShardFile(benchmark::State& state) {
  const Folder folder;
  const Model model;
  ShardFileHeader header = model.header;
  header.digests = state.range(0) == 1;
  for (auto _ : state) {
    TRIBUTARY_CHECK(WriteShardFile(folder.path(), header, model.Images()).ok());
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(BM_WriteShardFile)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void BM_PlainWriteAndSync(benchmark::State& state) {
  const Folder folder;
  const std::vector<float> values(kBytes / sizeof(float), 1.5f);
  for (auto _ : state) {
    TRIBUTARY_CHECK(
        WriteFileAtomically(
            folder.path() + "/x",
            absl::string_view(reinterpret_cast<const char*>(values.data()),
                              kBytes))
            .ok());
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(BM_PlainWriteAndSync)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_ReadShardFile(benchmark::State& state) {
  const Folder folder;
  const Model model;
  const auto written =
      WriteShardFile(folder.path(), model.header, model.Images());
  TRIBUTARY_CHECK(written.ok());
  std::vector<float> values(kElements);
  for (auto _ : state) {
    const auto file = ShardFile::Open(folder.path() + "/" + written->name());
    PageBuffer buffer;
    for (int tensor = 0; tensor < 3; ++tensor) {
      for (const ShardFile::Range& range : (*file)->ranges()) {
        TRIBUTARY_CHECK((*file)
                            ->Read(range, tensor, range.begin,
                                   absl::MakeSpan(values.data() + range.begin,
                                                  range.end - range.begin),
                                   &buffer)
                            .ok());
      }
    }
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(BM_ReadShardFile)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_ChecksumAlone(benchmark::State& state) {
  const std::vector<float> values(kBytes / sizeof(float), 1.5f);
  for (auto _ : state) {
    benchmark::DoNotOptimize(Crc32c(values.data(), kBytes));
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(BM_ChecksumAlone)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace tributary

BENCHMARK_MAIN();
