// SPDX-License-Identifier: Apache-2.0
// Reads the input as the files of a checkpoint: as damaged bytes, and as valid
// pages with impossible content, because the checksums refuse nearly every
// damaged file before its content is read.
#include <cstring>
#include <string>
#include <vector>

#include "common/checkpoint/files/page_format.h"
#include "common/checkpoint/files/paged_file.h"
#include "common/checkpoint/files/shard_file.h"
#include "common/checkpoint/manifest.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/serialized.h"

namespace tributary::fuzz {
namespace {

// The front of a file, with a header that describes the rest.
std::string Content(PagedFileKind kind, absl::string_view message,
                    absl::string_view data) {
  ContentHeader header;
  header.kind = static_cast<uint32_t>(kind);
  header.message_bytes = message.size();
  header.data_bytes = data.size();
  std::string content(reinterpret_cast<const char*>(&header), sizeof(header));
  content.append(message.data(), message.size());
  content.append(data.data(), data.size());
  return content;
}

void ReadManifestFile(absl::string_view file) {
  const absl::StatusOr<v1::CheckpointManifest> manifest =
      ParseManifest("manifest.ckpt", file);
  if (!manifest.ok()) return;
  const std::string bytes = Serialized(*manifest);
  const absl::StatusOr<v1::CheckpointManifest> again = ParseManifest(
      "again", ToPages(Content(PagedFileKind::kManifest, bytes, "")));
  Expect(again.ok(), "a manifest that is taken can be read again");
  Expect(Serialized(*again) == bytes, "it is the same manifest");
}

// Every range lies within the data: its two ends can be read, in each tensor.
void ReadRange(const ShardFile& shard, const ShardFile::Range& range,
               bool whole, PageBuffer* buffer) {
  const int states = static_cast<int>(shard.header().state_names.size());
  for (int tensor = 0; tensor <= states; ++tensor) {
    for (int64_t element : {range.begin, range.end - 1}) {
      float value = 0;
      const absl::Status status =
          shard.Read(range, tensor, element, absl::MakeSpan(&value, 1), buffer);
      Expect(whole ? status.ok() : status.ok() || absl::IsDataLoss(status),
             "what the index names can be read, or is damaged");
    }
    float value = 0;
    Expect(absl::IsOutOfRange(shard.Read(range, tensor, range.end,
                                         absl::MakeSpan(&value, 1), buffer)),
           "nothing behind a range can be read");
  }
}

void ReadShardFile(absl::string_view file, bool whole) {
  const auto shard = ShardFile::Parse("shard.ckpt", file);
  if (!shard.ok()) return;
  int64_t elements = 0;
  PageBuffer buffer;
  for (const ShardFile::Range& range : (*shard)->ranges()) {
    elements += range.end - range.begin;
    ReadRange(**shard, range, whole, &buffer);
  }
  const auto tensors =
      1 + static_cast<int64_t>((*shard)->header().state_names.size());
  Expect(elements * tensors * int64_t{sizeof(float)} ==
             (*shard)->file().data_bytes(),
         "the ranges are all of the data");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint8_t mode = input.Byte();
  const bool is_manifest = mode & 1;
  std::string file;
  switch (mode >> 1 & 3) {
    case 0:  // the file as it is
      file = std::string(input.Rest());
      break;
    case 1:  // whole pages
      file = ToPages(input.Rest());
      break;
    default: {  // whole pages with a front that fits
      const absl::string_view message = input.Part();
      file = ToPages(Content(
          is_manifest ? PagedFileKind::kManifest : PagedFileKind::kShard,
          message, input.Rest()));
    }
  }
  is_manifest ? ReadManifestFile(file)
              : ReadShardFile(file, /*whole=*/(mode >> 1 & 3) != 0);
  return 0;
}

}  // namespace tributary::fuzz
