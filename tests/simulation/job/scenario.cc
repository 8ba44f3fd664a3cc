// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/job/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/simulation/world/micros.h"
#include "tests/simulation/world/random.h"

namespace tributary::simulation {
namespace {

using Sync = Scenario::Sync;

void DrawSync(Random& random, Scenario* s) {
  const double draw = random.Uniform();
  if (draw < 0.55) {
    s->sync = Sync::kBulk;
  } else if (draw < 0.65 && s->workers > 1) {
    s->sync = Sync::kBackup;
    s->backup_workers = static_cast<int>(random.Between(1, s->workers - 1));
  } else if (draw < 0.85) {
    s->sync = Sync::kStale;
    s->staleness = random.Between(0, 4);
  } else {
    s->sync = Sync::kAsync;
  }
}

// If contributions tag the weights (model.h), they must be applied unchanged:
// by SGD with rate 1.
void DrawOptimizer(Random& random, Scenario* s) {
  if (s->sync != Sync::kBulk) {
    s->optimizer = OptimizerOf("sgd", 1);
    // A bound that is never reached, so that the norms are exchanged.
    if (s->sync == Sync::kBackup && random.Chance(0.3)) s->clip_norm = 1e9;
    return;
  }
  constexpr const char* kKinds[] = {"sgd",     "sgd",   "adam",    "adam",
                                    "adagrad", "adamw", "rmsprop", "lamb"};
  s->optimizer = OptimizerOf(random.Pick(kKinds), 0.05);
  if (s->optimizer.kind == "sgd") s->optimizer.momentum = 0.9;
  if (random.Chance(0.3)) s->optimizer.weight_decay = 0.01;
  if (random.Chance(0.3)) s->clip_norm = 0.5;
  s->skip_nonfinite = random.Chance(0.1);
}

void DrawJob(Random& random, Scenario* s) {
  constexpr int kWorkers[] = {1, 2, 3, 3, 3, 4};
  constexpr int kServers[] = {1, 2, 2, 2, 3};
  s->workers = random.Pick(kWorkers);
  s->servers = random.Pick(kServers);
  s->servers_after_resume = random.Pick(kServers);
  s->steps = random.Between(4, 15);
  DrawSync(random, s);
  DrawOptimizer(random, s);
  s->parameters = static_cast<int>(random.Between(1, 6));
  s->large_parameter = s->sync == Sync::kBulk && random.Chance(0.05);
  s->uneven_samples = s->sync == Sync::kBulk && random.Chance(0.5);
  constexpr int64_t kEvery[] = {0, 1, 2, 3, 5};
  s->checkpoint_every = random.Pick(kEvery);
  const double draw = random.Uniform();
  s->on_worker_loss = draw < 0.70   ? v1::WORKER_LOSS_WAIT
                      : draw < 0.92 ? v1::WORKER_LOSS_SHRINK
                                    : v1::WORKER_LOSS_FAIL;
  s->heartbeat_ms = random.Between(100, 300);
  s->lease_ms = s->heartbeat_ms * random.Between(4, 10);
  const int64_t compute = random.Scale(1 * kMilli, 60 * kMilli);
  s->compute_micros.assign(s->workers, compute);
  if (random.Chance(0.2)) {
    s->compute_micros[random.Between(0, s->workers - 1)] *= 5;
  }
}

void DrawAdversity(Random& random, Scenario* s) {
  constexpr double kRates[] = {0.005, 0.02, 0.05, 0.2};
  if (random.Chance(0.4)) s->adversity.lose = random.Pick(kRates);
  if (random.Chance(0.5)) s->adversity.repeat = random.Pick(kRates);
  if (random.Chance(0.2)) s->adversity.damage = random.Pick(kRates);
  if (random.Chance(0.4)) {
    s->adversity.slow = random.Pick(kRates);
    s->adversity.slow_micros = random.Scale(5 * kMilli, 3 * kSecond);
  }
}

void DrawMishap(Random& random, Mishap::Kind kind, int64_t expected,
                Scenario* s) {
  Mishap mishap;
  mishap.kind = kind;
  mishap.at_micros = random.Between(0, expected);
  mishap.lasts_micros = random.Scale(20 * kMilli, 5 * kSecond);
  mishap.target = static_cast<int>(random.Between(0, 7));
  mishap.known = random.Chance(0.5);
  mishap.spare = !s->fixed_places && random.Chance(0.7);
  s->mishaps.push_back(mishap);
}

// How long the job takes without faults.
int64_t ExpectedMicros(const Scenario& s) {
  const int64_t compute =
      *std::max_element(s.compute_micros.begin(), s.compute_micros.end());
  return 60 * kMilli + s.steps * (compute + 4 * kMilli);
}

// Each kind of mishap is enabled in some seeds and disabled in others, so that
// they do not hide each other (swarm testing, Groce et al., ISSTA 2012).
void DrawMishaps(Random& random, Scenario* s) {
  using enum Mishap::Kind;
  s->fixed_places = random.Chance(0.6);
  s->same_address = random.Chance(0.5);
  const int64_t expected = ExpectedMicros(*s);
  const auto some = [&](double chance, int most, Mishap::Kind kind) {
    if (!random.Chance(chance)) return;
    for (int64_t n = random.Between(1, most); n > 0; --n) {
      DrawMishap(random, kind, expected, s);
    }
  };
  some(0.35, 3, kCrashWorker);
  some(0.30, 2, kCrashServer);
  some(0.15, 2, kPauseWorker);
  some(0.10, 2, kPauseServer);
  some(0.07, 1, kPauseCoordinator);
  some(0.10, 2, kCrashCoordinator);
  some(0.12, 2, kCutWorker);
  some(0.08, 2, kCutServer);
  some(0.05, 1, kFullDisk);
  some(0.05, 1, kStop);
  some(0.08, 1, kPowerCut);
  s->calm_micros = expected * 3 / 2;
  for (const Mishap& mishap : s->mishaps) {
    s->calm_micros =
        std::max(s->calm_micros, mishap.at_micros + mishap.lasts_micros);
  }
  s->comes_back = s->mishaps.empty() || !random.Chance(0.03);
  some(0.15, 1, kDamagedCheckpoint);
}

// Uses a generator of its own, so that the other choices of a seed stay as they
// were.
void DrawAskedCheckpoints(Scenario* s) {
  if (s->seed % 6 != 5) return;
  Random random(s->seed);
  for (int64_t n = random.Between(1, 3); n > 0; --n) {
    DrawMishap(random, Mishap::Kind::kAskCheckpoint, ExpectedMicros(*s), s);
  }
}

// In some jobs with backup workers, one worker is stopped and nothing else goes
// wrong: the others must go on meanwhile. One of these may be slow, so that its
// messages are late.
void DrawLonePause(Scenario* s) {
  if (s->sync != Scenario::Sync::kBackup || s->seed % 4 != 1) return;
  Random random(s->seed);
  s->adversity = {};
  s->mishaps.clear();
  s->steps = random.Between(30, 90);
  s->compute_micros.assign(s->workers, random.Scale(kMilli, 5 * kMilli));
  s->compute_micros[0] *= random.Between(1, 4);
  Mishap pause;
  pause.kind = Mishap::Kind::kPauseWorker;
  pause.at_micros = random.Between(130 * kMilli, ExpectedMicros(*s));
  pause.lasts_micros = s->lease_ms * kMilli * 3 / 4;
  pause.target = static_cast<int>(random.Between(1, s->workers - 1));
  s->mishaps.push_back(pause);
}

}  // namespace

Scenario DrawScenario(uint64_t seed) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  DrawJob(random, &scenario);
  // Not drawn, so that the other choices of a seed stay as they were.
  scenario.adds_early = scenario.sync == Scenario::Sync::kBulk && seed % 2 == 0;
  scenario.residuals = scenario.sync == Scenario::Sync::kBulk && seed % 10 == 9;
  if (scenario.residuals) {  // as a job with error feedback must be
    scenario.skip_nonfinite = false;
    if (scenario.on_worker_loss == v1::WORKER_LOSS_SHRINK) {
      scenario.on_worker_loss = v1::WORKER_LOSS_WAIT;
    }
  }
  scenario.delay = scenario.sync == Scenario::Sync::kBulk && seed % 4 == 2;
  scenario.at_end = seed % 3 != 0;
  if (!random.Chance(0.05)) DrawAdversity(random, &scenario);
  if (!random.Chance(0.15)) DrawMishaps(random, &scenario);
  DrawAskedCheckpoints(&scenario);
  DrawLonePause(&scenario);
  return scenario;
}

v1::JobSpec JobOf(const Scenario& s) {
  v1::JobSpec job;
  job.set_name(absl::StrCat("seed-", s.seed));
  job.mutable_cluster()->set_servers(s.servers);
  job.mutable_cluster()->set_workers(s.workers);
  job.mutable_cluster()->set_on_worker_loss(s.on_worker_loss);
  job.mutable_training()->mutable_loss()->mutable_mse();
  job.mutable_training()->set_clip_norm(s.clip_norm);
  if (s.skip_nonfinite) {
    job.mutable_training()->set_nonfinite(v1::NON_FINITE_SKIP);
  }
  job.mutable_checkpoint()->set_every_steps(s.checkpoint_every);
  job.mutable_checkpoint()->set_keep(2);
  job.mutable_checkpoint()->set_at_end(s.at_end);
  v1::ParameterServerSpec& server =
      *job.mutable_strategy()->mutable_parameter_server();
  server.set_transport(v1::TRANSPORT_KIND_GRPC);
  server.set_sync_timeout_seconds(120);
  if (s.residuals) server.set_error_feedback(true);
  v1::SyncSpec& sync = *server.mutable_sync();
  switch (s.sync) {
    case Sync::kBulk:
    case Sync::kBackup:
      sync.mutable_bsp()->set_backup_workers(s.backup_workers);
      sync.mutable_bsp()->set_delay(s.delay);
      break;
    case Sync::kStale:
      sync.mutable_ssp()->set_staleness(s.staleness);
      break;
    case Sync::kAsync:
      sync.mutable_async();
      break;
  }
  return job;
}

const char* NameOf(Mishap::Kind kind) {
  constexpr const char* kNames[] = {
      "worker crashed",      "server crashed",     "worker paused",
      "server paused",       "coordinator paused", "coordinator crashed",
      "worker cut off",      "server cut off",     "disk full",
      "stop requested",      "power cut",          "checkpoint damaged",
      "checkpoint asked for"};
  return kNames[static_cast<int>(kind)];
}

std::string Scenario::Text() const {
  std::string text = absl::StrCat(
      delay > 0               ? "bsp delayed"
      : sync == Sync::kBulk   ? "bsp"
      : sync == Sync::kBackup ? absl::StrCat("bsp backup ", backup_workers)
      : sync == Sync::kStale  ? absl::StrCat("ssp ", staleness)
                              : "async",
      ", ", workers, " workers, ", servers, " servers, ", steps, " steps, ",
      parameters, large_parameter ? "+1 large" : "", " parameters, ",
      optimizer.kind, clip_norm > 0 ? " clipped" : "",
      skip_nonfinite ? " skip nonfinite" : "",
      adds_early ? ", added on arrival" : "", residuals ? ", residuals" : "",
      ", checkpoint every ", checkpoint_every, at_end ? " and at the end" : "",
      ", loss ", v1::WorkerLoss_Name(on_worker_loss),
      comes_back ? "" : ", nobody comes back");
  absl::StrAppendFormat(
      &text,
      "\n  lose %.3f, repeat %.3f, slow %.3f to %.3f s, damage %.3f; calm "
      "after %.3f s; heartbeat %d ms, lease %d ms, places %s",
      adversity.lose, adversity.repeat, adversity.slow,
      static_cast<double>(adversity.slow_micros) * 1e-6, adversity.damage,
      static_cast<double>(calm_micros) * 1e-6, heartbeat_ms, lease_ms,
      fixed_places ? "fixed" : "free");
  for (const Mishap& mishap : mishaps) {
    absl::StrAppendFormat(
        &text, "\n  at %.3f s: %s %d, %.3f s%s%s",
        static_cast<double>(mishap.at_micros) * 1e-6, NameOf(mishap.kind),
        mishap.target, static_cast<double>(mishap.lasts_micros) * 1e-6,
        mishap.known ? ", seen" : "", mishap.spare ? ", spare" : "");
  }
  return text;
}

}  // namespace tributary::simulation
