// SPDX-License-Identifier: Apache-2.0
#include "common/command_line/man_page.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/command_line/complete.h"

namespace tributary {
namespace {

// mandoc finds longer lines hard to review.
constexpr size_t kLongestLine = 78;

// Text in which no character is a command of the formatter, or is printed as
// another one: a hyphen must stay a hyphen for a reader who copies it.
std::string Escaped(absl::string_view text) {
  const std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"},
                                                         {"-", "\\-"},
                                                         {"'", "\\(aq"},
                                                         {"`", "\\(ga"},
                                                         {"^", "\\(ha"},
                                                         {"~", "\\(ti"}});
  return absl::StartsWith(escaped, ".") ? absl::StrCat("\\&", escaped)
                                        : escaped;
}

std::string Bold(absl::string_view text) {
  return absl::StrCat("\\fB", Escaped(text), "\\fR");
}

std::string Italic(absl::string_view text) {
  return absl::StrCat("\\fI", Escaped(text), "\\fR");
}

// Words in lines of at most kLongestLine.
std::string Filled(const std::vector<std::string>& words) {
  std::string text;
  size_t used = 0;
  for (const std::string& word : words) {
    std::string escaped = Escaped(word);
    if (used > 0 && used + 1 + escaped.size() > kLongestLine) {
      absl::StrAppend(&text, "\n");
      used = 0;
    } else if (used > 0) {
      absl::StrAppend(&text, " ");
      ++used;
      if (absl::StartsWith(escaped, "\\&")) escaped.erase(0, 2);
    }
    absl::StrAppend(&text, escaped);
    used += escaped.size();
  }
  return text.empty() ? text : text + "\n";
}

// Collects lines of one kind, and writes them when another kind begins.
class TextWriter {
 public:
  void Add(const std::string& line) {
    const std::string text(absl::StripTrailingAsciiWhitespace(line));
    if (text.empty()) {
      Flush();
    } else if (text[0] == ' ') {
      FlushWords();
      example_.push_back(Escaped(text));
    } else {
      FlushExample();
      for (const absl::string_view word :
           absl::StrSplit(text, ' ', absl::SkipEmpty())) {
        words_.emplace_back(word);
      }
    }
  }

  std::string Take() {
    Flush();
    return std::move(text_);
  }

 private:
  void Flush() {
    FlushWords();
    FlushExample();
  }

  void FlushWords() {
    if (words_.empty()) return;
    if (!text_.empty()) absl::StrAppend(&text_, ".PP\n");
    absl::StrAppend(&text_, Filled(words_));
    words_.clear();
  }

  void FlushExample() {
    if (example_.empty()) return;
    if (!text_.empty()) absl::StrAppend(&text_, ".PP\n");
    absl::StrAppend(&text_, ".nf\n", absl::StrJoin(example_, "\n"), "\n.fi\n");
    example_.clear();
  }

  std::string text_;
  std::vector<std::string> words_;
  std::vector<std::string> example_;
};

std::string TypeText(const OptionDescription& option) {
  const std::vector<std::string> values = ListedValues(option.type_name);
  return values.empty() ? option.type_name : absl::StrJoin(values, "|");
}

std::string OptionText(const OptionDescription& option) {
  std::string head;
  if (!option.positional.empty()) {
    head = Italic(option.positional);
  } else {
    std::vector<std::string> names;
    for (const std::string& name : option.short_names) {
      names.push_back(Bold(absl::StrCat("-", name)));
    }
    for (const std::string& name : option.long_names) {
      names.push_back(Bold(absl::StrCat("--", name)));
    }
    head = absl::StrJoin(names, ", ");
    if (option.takes_value) {
      absl::StrAppend(&head, " ", Italic(TypeText(option)));
    }
  }
  std::string body = OneLine(option.description);
  if (!option.default_text.empty()) {
    absl::StrAppend(&body, " (default: ", option.default_text, ")");
  }
  if (option.required) absl::StrAppend(&body, " (required)");
  return absl::StrCat(".TP\n", head, "\n", ManText(body));
}

std::string OptionTexts(const CommandDescription& command) {
  std::string positionals, options;
  for (const OptionDescription& option : command.options) {
    if (option.hidden) continue;
    absl::StrAppend(option.positional.empty() ? &options : &positionals,
                    OptionText(option));
  }
  return positionals + options;
}

// "tributary train [OPTIONS] [JOB]"
std::string Usage(const std::string& name, const CommandDescription& command) {
  std::string text = Bold(name);
  absl::StrAppend(&text, " [OPTIONS]");
  for (const OptionDescription& option : command.options) {
    if (option.positional.empty()) continue;
    const std::string positional = Italic(option.positional);
    absl::StrAppend(
        &text, " ",
        option.required ? positional : absl::StrCat("[", positional, "]"));
  }
  if (!command.commands.empty()) absl::StrAppend(&text, " ", Italic("COMMAND"));
  return text + "\n";
}

// A command's section, and those of its own commands.
std::string CommandText(const std::string& parent,
                        const CommandDescription& command) {
  const std::string name = absl::StrCat(parent, " ", command.name);
  std::string text =
      absl::StrCat(".SS ", Escaped(name), "\n", Usage(name, command), ".PP\n");
  absl::StrAppend(&text, ManText(command.description), OptionTexts(command));
  if (!command.footer.empty()) {
    absl::StrAppend(&text, ".PP\n", ManText(command.footer));
  }
  for (const CommandDescription& inner : command.commands) {
    absl::StrAppend(&text, CommandText(name, inner));
  }
  return text;
}

// The description without the program's name that may begin it.
std::string DescriptionOf(const CommandDescription& program) {
  std::string text = program.description;
  const std::string name = absl::StrCat(program.name, ": ");
  if (absl::StartsWith(text, name)) {
    text.erase(0, name.size());
    text[0] = absl::ascii_toupper(text[0]);
  }
  return text;
}

// The first sentence, without its full stop, as a page's line in an index.
std::string Summary(const std::string& description) {
  std::string line = OneLine(description);
  const size_t end = line.find(". ");
  line = end == std::string::npos ? line : line.substr(0, end);
  line = std::string(absl::StripSuffix(absl::StripAsciiWhitespace(line), "."));
  if (!line.empty()) line[0] = absl::ascii_tolower(line[0]);
  return line;
}

}  // namespace

std::string ManText(const std::string& text) {
  TextWriter writer;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    writer.Add(std::string(line));
  }
  return writer.Take();
}

std::string ManPage(const CommandDescription& program,
                    const std::string& version, const std::string& date) {
  const std::string& name = program.name;
  const std::string description = DescriptionOf(program);
  std::string page = absl::StrCat(
      ".TH ", Escaped(absl::AsciiStrToUpper(name)), " 1 \"", date, "\" \"",
      Escaped(version), "\" \"User Commands\"\n.SH NAME\n",
      ManText(absl::StrCat(name, " - ", Summary(description))),
      ".SH SYNOPSIS\n", Usage(name, program), ".SH DESCRIPTION\n",
      ManText(description));
  if (!program.footer.empty()) {
    absl::StrAppend(&page, ".PP\n", ManText(program.footer));
  }
  absl::StrAppend(&page, ".SH OPTIONS\n", OptionTexts(program));
  if (!program.commands.empty()) absl::StrAppend(&page, ".SH COMMANDS\n");
  for (const CommandDescription& command : program.commands) {
    absl::StrAppend(&page, CommandText(name, command));
  }
  return page;
}

}  // namespace tributary
