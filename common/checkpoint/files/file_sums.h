// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tributary {

// The checksum and the digest of a whole file, as a manifest has them.
struct FileSums {
  uint32_t crc32c = 0;
  std::string sha256;  // empty: there is no digest
};

// The sums that readers of a file compare with the manifest once they have read
// every page: nothing, the CRC-32C, or the CRC-32C and the SHA-256.
enum class Comparing { kNothing, kChecksum, kDigest };

// PageDigest returns the SHA-256 of a page's content, followed by its checksum
// `stored`; FileDigest that of the concatenated page digests, each of 32 bytes.
std::string PageDigest(absl::string_view content, uint32_t stored);
std::string FileDigest(const std::vector<std::string>& page_digests);

// The sums of a whole file, computed from its pages. Pages may be added in any
// order and repeatedly. Thread-safe.
class FileChecksum {
 public:
  FileChecksum(int64_t bytes, bool digests);

  // Adds a page: its content without the checksum, and its checksum `stored`.
  void Add(int64_t page, absl::string_view content, uint32_t stored);
  bool Has(int64_t page) const;
  // Valid once all pages have been added.
  FileSums Get() const;

 private:
  const int64_t bytes_;
  const bool digests_;  // computes the SHA-256, too
  mutable absl::Mutex mu_;
  std::vector<uint32_t> crcs_ ABSL_GUARDED_BY(mu_);           // by page
  std::vector<std::string> digests_of_ ABSL_GUARDED_BY(mu_);  // by page
  std::vector<bool> has_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
