// SPDX-License-Identifier: Apache-2.0
// Wrong command lines print one message, return exit code 2 and leave no files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <filesystem>

#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::kSoon;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr char kCommandLineJob[] = R"(name: small
model:
  sequential:
    - linear: {in: 20, out: 1}
data:
  train: {synthetic: {kind: linear, rows: 100}}
  batch_size: 10
training: {steps: 5, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
)";

struct Wrong {
  std::string label;
  std::string program = "tributary";
  std::vector<std::string> words;
  std::string message;  // part of the error
};

std::vector<Wrong> AllWrong() {
  return {
      {"UnknownCommand",
       "tributary",
       {"trian", "job.yaml"},
       "there is no command \"trian\"; did you mean train? (try tributary "
       "--help)"},
      {"HelpOfAnUnknownCommand",
       "tributary",
       {"help", "trian"},
       "there is no command \"trian\"; did you mean train?"},
      {"NearestOfTheNewCommands",
       "tributary",
       {"stpo"},
       "there is no command \"stpo\"; did you mean stop?"},
      {"ACommandsNameAsAnArgument",
       "tributary",
       {"why", "run"},
       "\"run\" is neither a run directory nor the name of a job"},
      {"JobAndCoordinator",
       "tributary",
       {"stop", "digits", "--coordinator", "127.0.0.1:1"},
       "JOB and --coordinator both name a job"},
      {"ATimeThatIsNoNumber",
       "tributary",
       {"stop", "digits", "--timeout", "nan"},
       "--timeout wants a number"},
      {"WhyAtNoAddress",
       "tributary",
       {"why", "--coordinator", "nowhere"},
       "nowhere"},
      {"LogsOfAnUnknownRole",
       "tributary",
       {"logs", "--role", "wroker"},
       "wroker"},
      {"LogsSinceNoTime",
       "tributary",
       {"logs", "--since", "yesterday"},
       "--since wants how long ago, as in 10m"},
      {"NoJob", "tributary", {"train"}, "a JOB file, or --resume"},
      {"MissingJob", "tributary", {"train", "no.yaml"}, "no.yaml: no such"},
      {"MistypedJob",
       "tributary",
       {"train", "jbo.yaml"},
       "jbo.yaml: no such job file; did you mean \"job.yaml\"?"},
      {"FolderAsJob", "tributary", {"train", "."}, ".: "},
      {"TrainAProgramsJob",
       "tributary",
       {"train", "program.yaml"},
       "program.yaml: a job without model and data is for a program of your "
       "own; start it with `tributary run`"},
      {"PlanAProgramsJob",
       "tributary",
       {"plan", "program.yaml", "--bandwidth", "1Gbit", "--measure"},
       "start it with `tributary run`"},
      {"CompareAProgramsJob",
       "tributary",
       {"compare", "program.yaml"},
       "start it with `tributary run`"},
      {"RunNothing", "tributary", {"run"}, "a PROGRAM is wanted"},
      {"RunUnknownOption",
       "tributary",
       {"run", "--wrokers", "4", "train.py"},
       "there is no option --wrokers"},
      {"RunMissingProgram",
       "tributary",
       {"run", "train.py"},
       "train.py: no such program"},
      {"RunAJobWithAModel",
       "tributary",
       {"run", "--job", "job.yaml", "/bin/true"},
       "job.yaml:2: the job has a model of its own"},
      {"RunWrongField",
       "tributary",
       {"run", "--set", "training.epochs=2", "/bin/true"},
       "--set training.epochs=2: training.epochs is for a job with model"},
      {"TwoJobs", "tributary", {"train", "job.yaml", "job.yaml"}, "job.yaml"},
      {"UnknownOption",
       "tributary",
       {"train", "job.yaml", "--worker", "2"},
       "there is no option --worker; did you mean --workers? (try tributary "
       "train --help)"},
      {"CompareNothing",
       "tributary",
       {"compare"},
       "either a JOB file or --from"},
      {"CompareTwoThings",
       "tributary",
       {"compare", "job.yaml", "--from", "run"},
       "either a JOB file or --from"},
      {"CompareUnknownStrategy",
       "tributary",
       {"compare", "job.yaml", "--strategies", "gossip"},
       "there is no \"gossip\"; known are single, parameter_server"},
      {"CompareWrongArgument",
       "tributary",
       {"compare", "job.yaml", "--strategies", "parameter_server:ssp"},
       "wanted parameter_server["},
      {"CompareNoWorkers",
       "tributary",
       {"compare", "job.yaml", "--workers", "2,0"},
       "--workers"},
      {"CompareNoRun",
       "tributary",
       {"compare", "--from", "nowhere"},
       "nowhere is no run directory"},
      {"NoServers",
       "tributary",
       {"train", "job.yaml", "--servers", "0"},
       "--servers"},
      {"TooManyServers",
       "tributary",
       {"train", "job.yaml", "--servers", "257"},
       "--servers"},
      {"WorkersAsWord",
       "tributary",
       {"train", "job.yaml", "--workers", "two"},
       "--workers"},
      {"UnknownDevice",
       "tributary",
       {"train", "job.yaml", "--device", "tpu"},
       "tpu"},
      {"SetWithoutValue",
       "tributary",
       {"train", "job.yaml", "--set", "training.steps"},
       "training.steps"},
      {"SetOfUnknownField",
       "tributary",
       {"train", "job.yaml", "--set", "training.stpes=5"},
       "steps"},
      {"SetOfWrongType",
       "tributary",
       {"train", "job.yaml", "--set", "training.steps=many"},
       "many"},
      {"ImpossibleListenAddress",
       "tributary",
       {"train", "job.yaml", "--listen", "here"},
       "HOST:PORT"},
      {"AddressOfAnotherMachine",
       "tributary",
       {"train", "job.yaml", "--listen", "192.0.2.1:0"},
       "cannot listen on 192.0.2.1:0"},
      {"RunDirectoryIsAFile",
       "tributary",
       {"train", "job.yaml", "--run-dir", "job.yaml"},
       "job.yaml is a file"},
      {"RunDirectoryWithoutAName",
       "tributary",
       {"train", "job.yaml", "--run-dir", ""},
       "--run-dir wants a value, got an empty one"},
      {"ResumeOfNothing",  // as with "$(tributary checkpoint newest run)"
       "tributary",
       {"train", "job.yaml", "--resume", ""},
       "--resume wants a value, got an empty one"},
      {"StopOfNothing",
       "tributary",
       {"stop", ""},
       "JOB wants a value, got an empty one"},
      {"RunDirectoryInAFile",
       "tributary",
       {"train", "job.yaml", "--run-dir", "job.yaml/run"},
       "cannot create job.yaml/run"},
      {"StatusOfNoAddress",
       "tributary",
       {"status", "--coordinator", "here"},
       "HOST:PORT"},
      {"StatusOfAUrl",
       "tributary",
       {"status", "--coordinator", "http://127.0.0.1:1"},
       "HOST:PORT without http://, as in 127.0.0.1:1"},
      {"OpenMetrics",
       "tributary",
       {"train", "job.yaml", "--metrics-listen", "0.0.0.0:0"},
       "machines: give --metrics-token-file, or --insecure-metrics"},
      {"CoordinatorWithoutJob", "tributary-coordinator", {}, "--job"},
      {"CoordinatorOfWrongJob",
       "tributary-coordinator",
       {"--job", "no.yaml"},
       "no.yaml: no such"},
      {"WorkerWithoutCoordinator", "tributary-worker", {}, "--coordinator is "},
      {"ServerWithoutCoordinator", "tributary-server", {}, "--coordinator is "},
      {"ServerWithUnknownOption",
       "tributary-server",
       {"--coordinator", "127.0.0.1:1", "--listne", "127.0.0.1:0"},
       "there is no option --listne; did you mean --listen? (try "
       "tributary-server --help)"},
      {"CoordinatorWithImpossibleTime",
       "tributary-coordinator",
       {"--job", "job.yaml", "--start-timeout", "-1"},
       "--start-timeout"},
  };
}

class WrongCommandLineTest : public testing::TemporaryFolderTest,
                             public ::testing::WithParamInterface<Wrong> {};

TEST_P(WrongCommandLineTest, GetsOneMessageAndLeavesNothingBehind) {
  Write("job.yaml", kCommandLineJob);
  Write("program.yaml", "training: {optimizer: adam}\n");
  std::vector<std::string> command = {testing::Program(GetParam().program)};
  command.insert(command.end(), GetParam().words.begin(),
                 GetParam().words.end());
  auto process =
      testing::RunningProcess::Start({.command = command, .folder = folder()});
  EXPECT_EQ(process->Wait(kSoon), 2);
  const std::string& output = process->output();
  EXPECT_THAT(output, AnyOf(StartsWith("tributary: "),
                            StartsWith(GetParam().program + ": ")));
  EXPECT_THAT(output, HasSubstr(GetParam().message));
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
  EXPECT_EQ(NumFiles(), 2) << "only the job files";
}

INSTANTIATE_TEST_SUITE_P(All, WrongCommandLineTest,
                         ::testing::ValuesIn(AllWrong()),
                         [](const auto& info) { return info.param.label; });

class CommandLineTest : public testing::TemporaryFolderTest {
 protected:
  // The output of a program that must succeed.
  std::string Run(std::vector<std::string> words) {
    words[0] = testing::Program(words[0]);
    auto process =
        testing::RunningProcess::Start({.command = words, .folder = folder()});
    EXPECT_EQ(process->Wait(kSoon), 0) << process->output();
    return process->output();
  }
};

TEST_F(CommandLineTest, EveryHelpShowsAnExample) {
  EXPECT_THAT(Run({"tributary", "--help"}), HasSubstr("tributary train"));
  EXPECT_THAT(Run({"tributary", "train", "--help"}),
              HasSubstr("  tributary train job.yaml"));
  EXPECT_THAT(Run({"tributary", "status", "--help"}),
              HasSubstr("tributary status --coordinator"));
  EXPECT_THAT(Run({"tributary-coordinator", "--help"}),
              HasSubstr("tributary-worker --coordinator"));
  for (const char* command : {"why", "logs", "stop"}) {
    EXPECT_THAT(Run({"tributary", command, "--help"}),
                HasSubstr(absl::StrCat("tributary ", command, " runs/digits")));
  }
}

TEST_F(CommandLineTest, HelpIsShownForTheWordAndForNone) {
  const std::string page = Run({"tributary", "--help"});
  EXPECT_EQ(Run({"tributary", "help"}), page);
  EXPECT_EQ(Run({"tributary", "help", "train"}),
            Run({"tributary", "train", "--help"}));
  EXPECT_EQ(Run({"tributary", "help", "checkpoint", "list"}),
            Run({"tributary", "checkpoint", "list", "--help"}));
  auto alone = testing::RunningProcess::Start(
      {.command = {testing::Program("tributary")}});
  EXPECT_EQ(alone->Wait(kSoon), 2) << "a forgotten command is no success";
  EXPECT_EQ(alone->output(), page);
}

// This must work wherever the program was installed from.
TEST_F(CommandLineTest, TheExampleOfTheHelpRunsInAnEmptyFolder) {
  const std::string page = Run({"tributary", "--help"});
  const size_t begin = page.find("  echo '{model");
  const size_t end = page.find("`tributary COMMAND", begin);
  ASSERT_NE(end, std::string::npos) << page;
  auto example = testing::RunningProcess::Start(
      {.command = {"/bin/sh", "-ec",
                   "PATH=$(dirname '" + testing::Program("tributary") +
                       "'):$PATH\n" + page.substr(begin, end - begin)},
       .folder = folder()});
  EXPECT_EQ(example->Wait(kSoon), 0) << example->output();
  EXPECT_THAT(example->output(), HasSubstr("done: 100 of 100 steps"));
}

TEST_F(CommandLineTest, VersionIsTold) {
  EXPECT_THAT(Run({"tributary", "--version"}), StartsWith("tributary "));
  EXPECT_THAT(Run({"tributary-coordinator", "--version"}),
              StartsWith("tributary "));
}

// The owner of the current folder can put libraries there.
TEST_F(CommandLineTest, LibrariesOfTheCurrentFolderAreNotLoaded) {
  std::vector<std::string> libraries;  // those of this test; most are theirs
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void* all) {
        static_cast<std::vector<std::string>*>(all)->push_back(
            std::filesystem::path(library->dlpi_name).filename());
        return 0;
      },
      &libraries);
  for (const std::string& name : libraries) {
    if (!name.empty()) Write(name, "");
  }
  ASSERT_GT(NumFiles(), 10);
  for (const char* program : {"tributary", "tributary-coordinator",
                              "tributary-server", "tributary-worker"}) {
    EXPECT_THAT(Run({program, "--version"}), StartsWith("tributary "));
  }
}

TEST_F(CommandLineTest, DryRunPrintsTheResolvedJobAndLeavesNothingBehind) {
  Write("job.yaml", kCommandLineJob);
  const std::string resolved =
      Run({"tributary", "train", "job.yaml", "--dry-run", "--workers", "3",
           "--set", "training.steps=7", "--device", "cpu"});
  EXPECT_THAT(resolved, HasSubstr("workers: 3"));
  EXPECT_THAT(resolved, HasSubstr("steps: 7"));
  EXPECT_THAT(resolved, HasSubstr("device: cpu"));
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(CommandLineTest, LogsOfARankThatTheJobLacksAreRefused) {
  std::filesystem::create_directories(Path("run/logs"));
  Write("run/job.yaml", kCommandLineJob);
  Write("run/logs/worker-0.log", "a line\n");
  const std::string line =
      Run({"tributary", "logs", "run", "--role", "worker", "--rank", "0"});
  EXPECT_THAT(line, HasSubstr("a line"));
  auto logs = testing::RunningProcess::Start(
      {.command = {testing::Program("tributary"), "logs", "run", "--rank", "9"},
       .folder = folder()});
  EXPECT_EQ(logs->Wait(kSoon), 2);
  EXPECT_THAT(logs->output(),
              HasSubstr("run/logs has no log of a process with the number 9; "
                        "it has those of worker-0"));
}

TEST_F(CommandLineTest, StatusOfNobodySaysSo) {
  auto process = testing::RunningProcess::Start(
      {.command = {testing::Program("tributary"), "status", "--coordinator",
                   "127.0.0.1:1"}});
  EXPECT_EQ(process->Wait(kSoon), 1);
  EXPECT_THAT(process->output(),
              MatchesRegex(
                  "tributary: coordinator 127.0.0.1:1 could not be reached for "
                  "[0-9.]+ s: nobody listens there; has the job ended\\?\n"));
}

}  // namespace
}  // namespace tributary
