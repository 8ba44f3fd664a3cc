// SPDX-License-Identifier: Apache-2.0
#include "common/host/memory/shared_arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::StatusIs;

std::shared_ptr<SharedArena> MakeArena(size_t bytes = 8192) {
  return SharedArena::Create(bytes).value();
}

std::shared_ptr<const MappedArena> Read(SharedArena& arena) {
  return MappedArena::Map(arena.Share().value()).value();
}

TEST(SharedArenaTest, GivesOutAllOfItAndTakesItBack) {
  const auto arena = MakeArena();
  std::vector<void*> parts;
  while (void* part = arena->Allocate(1000)) {  // takes 1024
    EXPECT_EQ(reinterpret_cast<uintptr_t>(part) % 64, 0u);
    std::memset(part, static_cast<int>(parts.size()), 1000);
    parts.push_back(part);
  }
  ASSERT_EQ(parts.size(), 8u);
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(static_cast<char*>(parts[i])[999], static_cast<char>(i));
  }
  // Back in an order that joins free ranges before, behind and between.
  for (const size_t i : {1, 3, 2, 0, 7, 5, 6, 4}) arena->Free(parts[i]);
  EXPECT_EQ(arena->Allocate(8193), nullptr);
  void* const all = arena->Allocate(8192);
  EXPECT_EQ(all, parts[0]);
  EXPECT_EQ(arena->Allocate(1), nullptr);
}

TEST(SharedArenaTest, LargeRangesBeginAtAPage) {
  constexpr size_t kLarge = 40'000, kSmall = 100;
  const auto arena = MakeArena(2 * SharedArena::Taken(kLarge) +
                               2 * SharedArena::Taken(kSmall));
  for (int i = 0; i < 2; ++i) {
    ASSERT_NE(arena->Allocate(kSmall), nullptr);
    void* const large = arena->Allocate(kLarge);
    ASSERT_NE(large, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 4096, 0u);
  }
}

TEST(SharedArenaTest, KnowsWhatLiesWithinIt) {
  const auto arena = MakeArena();
  char* const begin = static_cast<char*>(arena->Allocate(8192));
  EXPECT_EQ(arena->OffsetOf(begin, 8192), 0u);
  EXPECT_EQ(arena->OffsetOf(begin + 100, 8092), 100u);
  EXPECT_EQ(arena->OffsetOf(begin + 100, 8093), std::nullopt);
  EXPECT_EQ(arena->OffsetOf(begin - 1, 1), std::nullopt);
  EXPECT_EQ(arena->OffsetOf(begin, SIZE_MAX), std::nullopt);
  int elsewhere = 0;
  EXPECT_EQ(arena->OffsetOf(&elsewhere, sizeof(elsewhere)), std::nullopt);
}

TEST(SharedArenaTest, AReaderSeesWritesUntilTheOwnerDetaches) {
  auto arena = MakeArena(3 << 20);  // with huge pages, where there are any
  char* const text = static_cast<char*>(arena->Allocate(3 << 20));
  const uint64_t at = arena->OffsetOf(text, 5).value();
  const auto reader = Read(*arena);
  std::strcpy(text, "then");
  EXPECT_STREQ(reader->At(at, 5), "then");
  std::strcpy(text, "once");
  EXPECT_STREQ(reader->At(at, 5), "once");

  EXPECT_EQ(arena->moves(), 0u);
  TRIBUTARY_ASSERT_OK(arena->Detach());
  EXPECT_EQ(arena->moves(), 1u);
  TRIBUTARY_ASSERT_OK(arena->Detach());  // nobody reads it
  EXPECT_EQ(arena->moves(), 1u);
  EXPECT_STREQ(text, "once");
  std::strcpy(text, "more");
  EXPECT_STREQ(reader->At(at, 5), "once");
  const auto later = Read(*arena);
  EXPECT_STREQ(later->At(at, 5), "more");

  arena.reset();
  EXPECT_STREQ(reader->At(at, 5), "once");
  EXPECT_STREQ(later->At(at, 5), "more");
}

TEST(SharedArenaTest, SaysBeforehandThatItDetaches) {
  auto arena = MakeArena();
  char* const text = static_cast<char*>(arena->Allocate(8));
  const uint64_t at = arena->OffsetOf(text, 5).value();
  int calls = 0;
  arena->OnDetach([&] {
    ++calls;
    std::strcpy(text, "last");
  });
  TRIBUTARY_ASSERT_OK(arena->Detach());
  EXPECT_EQ(calls, 0) << "nobody reads it";
  const auto reader = Read(*arena);
  TRIBUTARY_ASSERT_OK(arena->Detach());
  EXPECT_EQ(calls, 1);
  EXPECT_STREQ(reader->At(at, 5), "last") << "it was still the shared memory";
  arena->OnDetach(nullptr);
  const auto later = Read(*arena);
  TRIBUTARY_ASSERT_OK(arena->Detach());
  EXPECT_EQ(calls, 1);
}

TEST(SharedArenaTest, NobodyElseCanWriteOrResizeIt) {
  const auto arena = MakeArena();
  for (int detached = 0; detached < 2; ++detached) {
    const UniqueFd memory = arena->Share().value();
    EXPECT_EQ(ftruncate(memory.get(), 0), -1);
    EXPECT_EQ(ftruncate(memory.get(), 1 << 20), -1);
    EXPECT_EQ(pwrite(memory.get(), "x", 1, 0), -1);
    EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
                   memory.get(), 0),
              MAP_FAILED);
    TRIBUTARY_ASSERT_OK(arena->Detach());
  }
}

TEST(MappedArenaTest, HasNothingBeyondItsBytes) {
  const auto arena = MakeArena();
  const auto reader = Read(*arena);
  EXPECT_NE(reader->At(0, 8192), nullptr);
  EXPECT_NE(reader->At(8192, 0), nullptr);
  EXPECT_EQ(reader->At(0, 8193), nullptr);
  EXPECT_EQ(reader->At(1, 8192), nullptr);
  EXPECT_EQ(reader->At(UINT64_MAX, 2), nullptr);
  EXPECT_EQ(reader->At(2, UINT64_MAX), nullptr);
}

using MappedFileTest = testing::TemporaryFolderTest;

// A reader of such memory could be killed by the owner's ftruncate.
TEST_F(MappedFileTest, MemoryThatCanShrinkIsRefused) {
  const std::string path = Write("file", std::string(4096, 'x'));
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_THAT(MappedArena::Map(file).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "sealed"));

  const UniqueFd memory(memfd_create("test", MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memory.get(), 4096), 0);
  EXPECT_THAT(MappedArena::Map(memory).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "sealed"));
  // Without F_SEAL_SEAL this seal would not last.
  ASSERT_EQ(fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_THAT(MappedArena::Map(memory).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "sealed"));
  ASSERT_EQ(fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  TRIBUTARY_EXPECT_OK(MappedArena::Map(memory));

  const UniqueFd empty(memfd_create("test", MFD_ALLOW_SEALING));
  ASSERT_EQ(fcntl(empty.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL), 0);
  EXPECT_THAT(MappedArena::Map(empty).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "no bytes"));
  EXPECT_THAT(MappedArena::Map(UniqueFd()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "sealed"));
}

}  // namespace
}  // namespace tributary
