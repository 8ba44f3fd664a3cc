// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/sources/source_reader.h"

namespace tributary {

#define TRIBUTARY_SOURCE_READERS(Add) void Add(SourceReaders* readers);
#include "worker/train/data/sources/source_readers.inc"
#undef TRIBUTARY_SOURCE_READERS

namespace {

const SourceReaders& AllSourceReaders() {
  static const SourceReaders* const readers = [] {
    auto* made = new SourceReaders;
#define TRIBUTARY_SOURCE_READERS(Add) Add(made);
#include "worker/train/data/sources/source_readers.inc"
#undef TRIBUTARY_SOURCE_READERS
    return made;
  }();
  return *readers;
}

}  // namespace

const SourceReader* ReaderOf(const v1::DataSource& source) {
  return AllSourceReaders().Find(source.kind_case());
}

}  // namespace tributary
