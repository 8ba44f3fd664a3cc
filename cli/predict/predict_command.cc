// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/predict/run_worker.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"

namespace tributary {
namespace {

constexpr char kPredictDescription[] =
    "Predicts the rows of a file with the model of a run.";
constexpr char kPredictFooter[] =
    "The input has the format of the training data: CSV, IDX, NPY or text,\n"
    "gzipped or plain. Columns of a CSV file are found by name; the label may "
    "be\n"
    "missing. The run directory's model.json says how rows become inputs, and\n"
    "weights.safetensors has the weights. Batches are read and written one "
    "after\n"
    "the other, so a file of any length needs little memory.\n\n"
    "Examples:\n"
    "  tributary predict run people.csv\n"
    "  tributary predict run images.idx.gz --format json --output out.jsonl\n"
    "  tributary predict run --generate 200 --prompt 'ROMEO:'\n\n"
    "Exit codes: 0 done, 1 the predictions cannot be written, 2 wrong command\n"
    "line, run directory or input; the line says which file and row.";

struct PredictOptions {
  std::string run;
  std::string input;
  std::string output;
  std::string weights;
  std::string format = "csv";
  bool top = false;
  bool allow_unknown = false;
  int64_t generate = 0;
  std::string prompt;
  uint64_t seed = 1;
  double temperature = 1;
};

int Refuse(absl::string_view why) {
  PrintError(absl::StrCat(why, " (try tributary predict --help)"));
  return kExitRefused;
}

int Predict(const PredictOptions& options) {
  const bool generate = options.generate > 0;
  if (generate != options.input.empty()) {
    return Refuse(generate ? "--generate takes a --prompt and no INPUT"
                           : "an INPUT is wanted, or --generate");
  }
  if (generate == options.prompt.empty()) {
    return Refuse(generate ? "--generate wants a --prompt"
                           : "--prompt is for --generate");
  }
  std::vector<std::string> arguments = {"--predict", options.run};
  const auto add = [&arguments](const char* name, const std::string& value) {
    // One word, because a value may begin with a dash.
    if (!value.empty()) arguments.push_back(absl::StrCat(name, "=", value));
  };
  add("--input", options.input);
  add("--output", options.output);
  add("--weights", options.weights);
  add("--prompt", options.prompt);
  if (options.format == "json") arguments.push_back("--json");
  if (options.top) arguments.push_back("--top");
  if (options.allow_unknown) arguments.push_back("--allow-unknown");
  if (generate) {
    add("--generate", absl::StrCat(options.generate));
    add("--seed", absl::StrCat(options.seed));
    add("--temperature", absl::StrCat(options.temperature));
  }
  return BecomeWorker(arguments);
}

void AddGenerateOptions(CLI::App* command, PredictOptions* options) {
  command
      ->add_option("--generate", options->generate,
                   "of a text model: continue the prompt by so many tokens")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--prompt", options->prompt, "the text to continue");
  command
      ->add_option("--seed", options->seed,
                   "draws the tokens; the same seed gives the same text")
      ->capture_default_str();
  command
      ->add_option("--temperature", options->temperature,
                   "above 1 more varied, below 1 less; 0: always the most\n"
                   "probable token")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1000.0));
}

}  // namespace

void AddPredictCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* command = app.add_subcommand("predict", kPredictDescription);
  command->footer(kPredictFooter);
  command->add_option("RUN", options->run, "a run directory")->required();
  command->add_option("INPUT", options->input, "a file of rows");
  command->add_option("--output", options->output,
                      "write to this file; it appears when it is whole");
  command->add_option("--format", options->format, "csv, or json: JSON lines")
      ->capture_default_str()
      ->check(CLI::IsMember({"csv", "json"}));
  command->add_flag("--top", options->top,
                    "of classes write only the most probable one");
  command->add_flag(
      "--allow-unknown", options->allow_unknown,
      "accept categories that the training data lack, as none of\n"
      "those it has, instead of ending with an error");
  command->add_option("--weights", options->weights,
                      "a safetensors file, as tributary export writes it,\n"
                      "instead of the run's final weights");
  AddGenerateOptions(command, options.get());
  command->callback(
      [options, action] { *action = [options] { return Predict(*options); }; });
}

}  // namespace tributary
