// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/testing/http/http_get.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::HttpGet;
using testing::HttpReply;
using ::testing::Not;

std::unique_ptr<Exporter> Start() {
  auto exporter = Exporter::Start({.listen = "127.0.0.1:0", .role = "server"});
  EXPECT_TRUE(exporter.ok()) << exporter.status();
  return *std::move(exporter);
}

int PortOf(const Exporter& exporter) {
  return std::stoi(exporter.address().substr(exporter.address().find(':') + 1));
}

TEST(ExporterTest, EveryProcessTellsItsBuildMemoryAndTime) {
  const auto exporter = Start();
  const HttpReply reply = HttpGet(PortOf(*exporter), "/metrics");
  EXPECT_EQ(reply.code, 200);
  EXPECT_THAT(reply.headers, HasSubstr("text/plain; version=0.0.4"));
  for (const char* piece :
       {"tributary_build_info{version=\"", "role=\"server\"} 1\n",
        "tributary_healthy 1\n", "process_resident_memory_bytes ",
        "tributary_process_peak_memory_bytes ", "process_cpu_seconds_total ",
        "process_start_time_seconds ", "process_open_fds ",
        "tributary_log_messages_total{level=\"error\"} "}) {
    EXPECT_THAT(reply.body, HasSubstr(piece));
  }
}

TEST(ExporterTest, TheFirstPageLinksTheOthers) {
  const auto exporter = Start();
  const HttpReply reply = HttpGet(PortOf(*exporter), "/");
  EXPECT_EQ(reply.code, 200);
  EXPECT_THAT(reply.headers, HasSubstr("text/html"));
  EXPECT_THAT(reply.body, HasSubstr("tributary server"));
  EXPECT_THAT(reply.body, HasSubstr("href=\"/metrics\""));
  EXPECT_THAT(reply.body, HasSubstr("href=\"/healthz\""));
}

TEST(ExporterTest, AFirstPageOfTheProcessReplacesTheLinks) {
  const auto exporter = Exporter::Start(
      {.listen = "127.0.0.1:0",
       .role = "coordinator",
       .pages = {{"/", [] { return HttpAnswer{.body = "mine\n"}; }}}});
  TRIBUTARY_ASSERT_OK(exporter);
  EXPECT_EQ(HttpGet(PortOf(**exporter), "/").body, "mine\n");
  EXPECT_EQ(HttpGet(PortOf(**exporter), "/healthz").code, 200);
}

TEST(ExporterTest, HealthHasAPortThatReadersOfPagesDoNotUse) {
  const auto exporter =
      Exporter::Start({.listen = "127.0.0.1:0",
                       .role = "server",
                       .access = {.health_listen = "127.0.0.1:0"}});
  TRIBUTARY_ASSERT_OK(exporter);
  const Exporter::Handle check = (*exporter)->AddHealthCheck([] {
    return Health{true, "waits for rank 3"};
  });
  const int port = (*exporter)->health_port();
  EXPECT_NE(port, PortOf(**exporter));
  EXPECT_EQ(HttpGet(port, "/healthz").body, "ok\nwaits for rank 3\n");
  EXPECT_EQ(HttpGet(port, "/metrics").code, 404);
  EXPECT_EQ(HttpGet(port, "/").code, 404);
  EXPECT_EQ(HttpGet(PortOf(**exporter), "/healthz").code, 200);
}

TEST(ExporterTest, HealthMayHaveAPortAloneButOfThisMachine) {
  const auto exporter =
      Exporter::Start({.role = "server",
                       .access = {.token = "0123456789abcdef0123456789abcdef",
                                  .health_listen = "127.0.0.1:0"}});
  TRIBUTARY_ASSERT_OK(exporter);
  EXPECT_EQ((*exporter)->address(), "");
  EXPECT_EQ(HttpGet((*exporter)->health_port(), "/healthz").body, "ok\n");
  EXPECT_THAT(Exporter::Start(
                  {.access = {.insecure = true, .health_listen = "0.0.0.0:0"}}),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                "--health-listen must be a loopback address"));
}

TEST(ExporterTest, TheEndOfTheCertificateIsAMetric) {
  EXPECT_THAT(Start()->MetricsText(),
              Not(HasSubstr("tributary_certificate_expiry")));
  absl::StatusOr<absl::Time> end = absl::FromUnixSeconds(1'790'000'000);
  const auto exporter =
      Exporter::Start({.role = "server",
                       .access = {.certificate_end = [&end] { return end; }}});
  TRIBUTARY_ASSERT_OK(exporter);
  constexpr char kLine[] =
      "\ntributary_certificate_expiry_timestamp_seconds 1790000000\n";
  EXPECT_THAT((*exporter)->MetricsText(), HasSubstr(kLine));
  end = absl::NotFoundError("tls.crt: cannot be read");
  EXPECT_THAT((*exporter)->MetricsText(),
              Not(HasSubstr("tributary_certificate_expiry")));
}

TEST(ExporterTest, ASourceIsAskedUntilItsHandleEnds) {
  const auto exporter = Start();
  {
    const Exporter::Handle handle =
        exporter->AddSource([](MetricsWriter* writer) {
          writer->Gauge("tributary_step", "Steps.", 7);
        });
    EXPECT_THAT(HttpGet(PortOf(*exporter), "/metrics").body,
                HasSubstr("tributary_step 7\n"));
  }
  EXPECT_THAT(HttpGet(PortOf(*exporter), "/metrics").body,
              Not(HasSubstr("tributary_step")));
}

TEST(ExporterTest, AHandleWaitsForTheScrapeThatAsksItsSource) {
  const auto exporter = Start();
  absl::Notification asked, removed;
  Exporter::Handle handle = exporter->AddSource([&](MetricsWriter*) {
    asked.Notify();
    // The object that the source reads would be gone by now.
    EXPECT_FALSE(
        removed.WaitForNotificationWithTimeout(absl::Milliseconds(50)));
  });
  std::thread scraper([&] { exporter->MetricsText(); });
  asked.WaitForNotification();
  handle = Exporter::Handle();
  removed.Notify();
  scraper.join();
  exporter->MetricsText();  // would ask, and notify, a second time
}

TEST(ExporterTest, HealthTurnsTo503WithTheSentenceAndBack) {
  const auto exporter = Start();
  const int port = PortOf(*exporter);
  EXPECT_EQ(HttpGet(port, "/healthz").body, "ok\n");
  Health health{.ok = false, .sentence = "the coordinator is silent"};
  absl::Mutex mu;
  const Exporter::Handle content =
      exporter->AddHealthCheck([] { return Health(); });
  const Exporter::Handle handle = exporter->AddHealthCheck([&] {
    absl::MutexLock lock(&mu);
    return health;
  });
  const HttpReply ill = HttpGet(port, "/healthz");
  EXPECT_EQ(ill.code, 503);
  EXPECT_EQ(ill.body, "the coordinator is silent\n");
  EXPECT_THAT(HttpGet(port, "/metrics").body,
              HasSubstr("tributary_healthy 0\n"));
  {
    absl::MutexLock lock(&mu);
    health = {.ok = true, .sentence = "waits for rank 1"};
  }
  const HttpReply well = HttpGet(port, "/healthz");
  EXPECT_EQ(well.code, 200);
  EXPECT_EQ(well.body, "ok\nwaits for rank 1\n");
}

TEST(ExporterTest, WithoutAnAddressNothingListens) {
  const auto exporter = Exporter::Start({.role = "worker"});
  TRIBUTARY_ASSERT_OK(exporter);
  EXPECT_EQ((*exporter)->address(), "");
  EXPECT_THAT((*exporter)->MetricsText(), HasSubstr("role=\"worker\""));
}

}  // namespace
}  // namespace tributary
