// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/log_line.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

// 1795249388.123456 s after 1970: 2026-11-21 08:23:08.123456 UTC.
LogRecord Record(absl::string_view message) {
  return {.time = absl::FromUnixMicros(1795249388'123456),
          .level = "info",
          .role = "server",
          .index = 1,
          .message = message};
}

TEST(LogLineTest, TextBeginsWithTimeLevelAndWhoSaysIt) {
  EXPECT_EQ(
      FormatLogLine(LogFormat::kText, Record("serving shard 1 of 2")),
      "2026-11-21T08:23:08.123456Z info server-1: serving shard 1 of 2\n");
}

TEST(LogLineTest, AnIndexThatIsNotKnownYetIsLeftOut) {
  LogRecord record = Record("listening");
  record.index = -1;
  EXPECT_EQ(FormatLogLine(LogFormat::kText, record),
            "2026-11-21T08:23:08.123456Z info server: listening\n");
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, record),
            R"({"time":"2026-11-21T08:23:08.123456Z","level":"info",)"
            R"("role":"server","message":"listening"})"
            "\n");
}

TEST(LogLineTest, JsonEscapesSoThatARecordStaysOneLine) {
  EXPECT_EQ(
      FormatLogLine(LogFormat::kJson, Record("a \"b\" \\ c\nd\te\x01\x7f/")),
      R"({"time":"2026-11-21T08:23:08.123456Z","level":"info",)"
      R"("role":"server","index":1,)"
      R"("message":"a \"b\" \\ c\nd\te\u0001)"
      "\x7f/\"}\n");
}

TEST(LogLineTest, TheMessageOfALineIsFoundInBothFormats) {
  for (LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    for (const char* message : {"x: y", "a \"b\" {", "", "2 3 4: 5"}) {
      std::string line = FormatLogLine(format, Record(message));
      line.pop_back();
      EXPECT_EQ(MessageOf(line), message);
    }
  }
  for (const char* other :
       {"", "no graphics card", "{\"message\": 5}", "{broken", "a b c: d"}) {
    EXPECT_EQ(MessageOf(other), other);
  }
}

TEST(LogLineTest, JsonKeepsUtf8AndReplacesWhatIsNone) {
  // "ä", a lone continuation byte, a cut-off sequence at the end.
  const std::string line =
      FormatLogLine(LogFormat::kJson, Record("\xc3\xa4 \x80 \xe2\x82"));
  EXPECT_NE(line.find("\"message\":\"\xc3\xa4 \xef\xbf\xbd \xef\xbf\xbd\"}\n"),
            std::string::npos)
      << line;
}

TEST(LogLineTest, TheTimeIsReadFromBothFormats) {
  const absl::Time time = absl::FromUnixMicros(1'795'000'000'123'456);
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string line = FormatLogLine(
        format,
        {.time = time, .level = "info", .role = "server", .message = "m"});
    EXPECT_EQ(TimeOfLine(line), time) << line;
  }
  EXPECT_EQ(TimeOfLine("Traceback (most recent call last):"), std::nullopt);
  EXPECT_EQ(TimeOfLine("{\"time\": 3}"), std::nullopt);
  EXPECT_EQ(TimeOfLine(""), std::nullopt);
}

}  // namespace
}  // namespace tributary
