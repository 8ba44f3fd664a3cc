// SPDX-License-Identifier: Apache-2.0
#include "bench/push_pull/channels.h"

#include <cstdint>
#include <cstring>
#include <functional>

#include "absl/strings/str_join.h"
#include "common/base/clock.h"

namespace tributary::bench {
namespace {

double SecondsNow() {
  return 1e-6 * static_cast<double>(Clock::Real().NowMicros());
}

}  // namespace

std::string Measured::Encode() const {
  std::string bytes(sizeof(double) * (1 + step_seconds.size()), '\0');
  std::memcpy(bytes.data(), &processor_seconds, sizeof(double));
  if (!step_seconds.empty()) {
    std::memcpy(bytes.data() + sizeof(double), step_seconds.data(),
                sizeof(double) * step_seconds.size());
  }
  return bytes;
}

Measured Measured::Decode(const std::string& bytes) {
  Measured measured;
  measured.step_seconds.resize(bytes.size() / sizeof(double) - 1);
  std::memcpy(&measured.processor_seconds, bytes.data(), sizeof(double));
  if (!measured.step_seconds.empty()) {
    std::memcpy(measured.step_seconds.data(), bytes.data() + sizeof(double),
                sizeof(double) * measured.step_seconds.size());
  }
  return measured;
}

void ServeMeasured(Wire& wire) {
  wire.Send("ready");
  wire.Receive();  // "begin"
  const double begin = ProcessorSeconds();
  wire.Send("begun");
  wire.Receive();  // "end"
  wire.Send(Measured{.processor_seconds = ProcessorSeconds() - begin}.Encode());
  wire.Receive();  // every result is there
}

void DriveMeasured(const Work& work, Wire& wire,
                   const std::function<void()>& step) {
  for (int i = 0; i < work.warm_up; ++i) step();
  wire.Send("ready");
  wire.Receive();  // "begin"
  Measured measured;
  const double begin = ProcessorSeconds();
  for (int i = 0; i < work.steps; ++i) {
    const double start = SecondsNow();
    step();
    measured.step_seconds.push_back(SecondsNow() - start);
  }
  measured.processor_seconds = ProcessorSeconds() - begin;
  wire.Send(measured.Encode());
  wire.Receive();  // every result is there
}

std::vector<Measured> Measure(const Channel& channel, const Work& work) {
  std::vector<Child> servers;
  std::vector<std::string> addresses;
  for (int i = 0; i < work.servers; ++i) {
    servers.push_back(
        Child::Fork([&, i](Wire& wire) { channel.Serve(work, i, wire); }));
    addresses.push_back(servers.back().wire().Receive());
  }
  const std::string all = absl::StrJoin(addresses, " ");
  for (Child& server : servers) server.wire().Send(all);
  for (Child& server : servers) server.wire().Receive();  // "ready"

  std::vector<Child> workers;
  for (int i = 0; i < work.workers; ++i) {
    workers.push_back(
        Child::Fork([&, i](Wire& wire) { channel.Drive(work, i, wire); }));
    workers.back().wire().Send(all);
  }
  for (Child& worker : workers) worker.wire().Receive();  // "ready"
  for (Child& server : servers) server.wire().Send("begin");
  for (Child& server : servers) server.wire().Receive();  // "begun"
  for (Child& worker : workers) worker.wire().Send("begin");

  std::vector<Measured> measured;
  for (Child& worker : workers) {
    measured.push_back(Measured::Decode(worker.wire().Receive()));
  }
  for (Child& server : servers) server.wire().Send("end");
  for (Child& server : servers) {
    measured.push_back(Measured::Decode(server.wire().Receive()));
  }
  for (Child& worker : workers) worker.wire().Send("done");
  for (Child& server : servers) server.wire().Send("done");
  return measured;
}

}  // namespace tributary::bench
