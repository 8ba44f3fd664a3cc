// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/files/file_sums.h"

#include "absl/strings/str_join.h"
#include "common/checkpoint/files/paged_file.h"
#include "common/files/sha256.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {

std::string PageDigest(absl::string_view content, uint32_t stored) {
  Sha256 sha256;
  sha256.Update(content.data(), content.size());
  sha256.Update(&stored, sizeof(stored));
  return sha256.Digest();
}

std::string FileDigest(const std::vector<std::string>& page_digests) {
  Sha256 sha256;
  for (const std::string& digest : page_digests) {
    sha256.Update(digest.data(), digest.size());
  }
  return sha256.Digest();
}

FileChecksum::FileChecksum(int64_t bytes, bool digests)
    : bytes_(bytes),
      digests_(digests),
      crcs_((bytes + kPageBytes - 1) / kPageBytes),
      digests_of_(digests ? crcs_.size() : 0),
      has_(crcs_.size()) {}

void FileChecksum::Add(int64_t page, absl::string_view content,
                       uint32_t stored) {
  const uint32_t crc = ExtendCrc32c(Crc32c(content.data(), content.size()),
                                    &stored, sizeof(stored));
  const std::string digest = digests_ ? PageDigest(content, stored) : "";
  absl::MutexLock lock(&mu_);
  crcs_[page] = crc;
  if (digests_) digests_of_[page] = digest;
  has_[page] = true;
}

bool FileChecksum::Has(int64_t page) const {
  absl::MutexLock lock(&mu_);
  return has_[page];
}

FileSums FileChecksum::Get() const {
  absl::MutexLock lock(&mu_);
  const Crc32cShift over_page(kPageBytes);
  uint32_t crc = 0;
  for (size_t page = 0; page + 1 < crcs_.size(); ++page) {
    crc = over_page(crc) ^ crcs_[page];
  }
  const int64_t last =
      bytes_ - static_cast<int64_t>(crcs_.size() - 1) * kPageBytes;
  return {.crc32c = Crc32cShift(last)(crc) ^ crcs_.back(),
          .sha256 = digests_ ? FileDigest(digests_of_) : ""};
}

}  // namespace tributary
