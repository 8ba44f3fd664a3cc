// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "common/command_line/page_access.h"
#include "common/telemetry/log.h"
#include "common/wire/identity/access.h"
#include "python/src/native/raise.h"
#include "python/src/native/session_binding.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tributary {
namespace {

// (name, shape, running momentum, memory of the weights)
using PythonParameter = std::tuple<std::string, Shape, double, HostFloats>;

std::unique_ptr<SessionBinding> Join(
    const std::string& coordinator, std::optional<uint32_t> rank,
    double join_timeout, const std::vector<std::string>& settings,
    const std::string& device, const std::string& arithmetic,
    const std::string& metrics_listen, const std::string& tls,
    const std::string& token_file, const std::string& metrics_token_file,
    bool insecure, bool insecure_groups) {
  const absl::StatusOr<Access> access =
      Access::Read({.tls = tls,
                    .token_file = token_file,
                    .insecure = insecure,
                    .insecure_groups = insecure_groups},
                   PeerRole::kWorker);
  RaiseUnlessOk(access.status(), "join");
  const absl::StatusOr<PageAccess> pages =
      ReadPageAccess({.metrics_listen = metrics_listen,
                      .metrics_token_file = metrics_token_file},
                     *access);
  RaiseUnlessOk(pages.status(), "join");
  // Makes log lines that look like those of the other processes.
  RaiseUnlessOk(SetUpLog({.role = "worker"}), "join");
  auto session =
      SessionBinding::Join({.coordinator = coordinator,
                            .rank = rank,
                            .join_timeout = absl::Seconds(join_timeout),
                            .settings = settings,
                            .device = device,
                            .metrics_listen = metrics_listen,
                            .arithmetic = arithmetic,
                            .access = *access,
                            .pages = *pages});
  SetLogIndex(session->rank());
  return session;
}

void Start(SessionBinding& session, std::vector<PythonParameter> parameters,
           int64_t total_steps, int64_t steps_per_epoch, uint32_t data_checksum,
           std::vector<int> reserved) {
  std::vector<SessionBinding::Parameter> declared;
  for (auto& [name, shape, momentum, weight] : parameters) {
    declared.push_back(
        {std::move(name), std::move(shape), momentum, std::move(weight)});
  }
  session.Start(std::move(declared), {.total_steps = total_steps,
                                      .steps_per_epoch = steps_per_epoch,
                                      .data_checksum = data_checksum,
                                      .reserved = std::move(reserved)});
}

void SetData(SessionBinding& session, int64_t rows, int64_t global_batch,
             int64_t accumulation, const std::string& order) {
  session.SetData({.rows = rows,
                   .global_batch = global_batch,
                   .accumulation = accumulation,
                   .order = order});
}

Session::Next BeginStep(SessionBinding& session, uint64_t samples,
                        std::vector<double> learning_rates) {
  return session.BeginStep(
      {.samples = samples, .learning_rates = std::move(learning_rates)});
}

Session::Next FinishStep(SessionBinding& session, std::optional<double> loss,
                         double compute_seconds, double data_seconds) {
  return session.FinishStep({.loss = loss,
                             .compute_seconds = compute_seconds,
                             .data_seconds = data_seconds});
}

void ReportEvaluation(SessionBinding& session, uint64_t samples,
                      double loss_sum, uint64_t correct, uint64_t values) {
  v1::EvaluationPart part;
  part.set_samples(samples);
  part.set_loss_sum(loss_sum);
  part.set_correct(correct);
  part.set_values(values);
  session.ReportEvaluation(part);
}

std::pair<uint64_t, uint64_t> Traffic(const SessionBinding& session) {
  const Session::Traffic traffic = session.traffic();
  return {traffic.bytes_sent, traffic.bytes_received};
}

}  // namespace

void BindSession(nb::module_& module) {
  nb::enum_<Session::Next>(module, "Next")
      .value("STEP", Session::Next::kStep)
      .value("MOVED", Session::Next::kMoved)
      .value("END", Session::Next::kEnd);
  module.attr("OPEN_END") = kOpenEnd;
  nb::class_<SessionBinding>(module, "Session")
      .def_static("join", &Join, nb::kw_only(), "coordinator"_a,
                  "rank"_a.none(), "join_timeout"_a, "settings"_a, "device"_a,
                  "arithmetic"_a, "metrics_listen"_a, "tls"_a, "token_file"_a,
                  "metrics_token_file"_a, "insecure"_a, "insecure_groups"_a)
      .def_prop_ro("rank", &SessionBinding::rank)
      .def_prop_ro("world", &SessionBinding::world)
      .def_prop_ro("seed", &SessionBinding::seed)
      .def_prop_ro("name", &SessionBinding::name)
      .def_prop_ro("steps", &SessionBinding::steps)
      .def_prop_ro("skipped", &SessionBinding::skipped)
      .def_prop_ro("is_late", &SessionBinding::is_late)
      .def_prop_ro("gradient_moves", &SessionBinding::gradient_moves)
      .def_prop_ro("traffic", &Traffic)
      .def("start", &Start, "parameters"_a, nb::kw_only(), "total_steps"_a,
           "steps_per_epoch"_a, "data_checksum"_a,
           "reserved"_a = std::vector<int>())
      .def("gradient", &SessionBinding::Gradient, "parameter"_a,
           nb::rv_policy::reference)
      .def("set_data", &SetData, nb::kw_only(), "rows"_a, "global_batch"_a,
           "accumulation"_a, "order"_a)
      .def_prop_ro("position", &SessionBinding::Position)
      .def("steps_of", &SessionBinding::StepsOf, "epochs"_a)
      .def("begin_step", &BeginStep, "samples"_a, "learning_rates"_a)
      .def("is_unchanged", &SessionBinding::IsUnchanged, "parameter"_a)
      .def("gradient_ready", &SessionBinding::GradientReady, "parameter"_a)
      .def("finish_step", &FinishStep, nb::kw_only(), "loss"_a.none(),
           "compute_seconds"_a, "data_seconds"_a)
      .def("show_newest", &SessionBinding::ShowNewest, "show"_a)
      .def("report_evaluation", &ReportEvaluation, nb::kw_only(), "samples"_a,
           "loss_sum"_a, "correct"_a, "values"_a)
      .def("finish", &SessionBinding::Finish)
      .def("fail", &SessionBinding::Fail, "why"_a)
      .def("cancel", &SessionBinding::Cancel, "why"_a);
}

}  // namespace tributary
