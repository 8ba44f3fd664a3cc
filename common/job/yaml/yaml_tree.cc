// SPDX-License-Identifier: Apache-2.0
#include "common/job/yaml/yaml_tree.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace tributary {
namespace {

int LineOf(const YAML::Mark& mark) { return std::max(mark.line, 0) + 1; }

// Builds the tree from the parser's events. After the first error it ignores
// further events; the text's bounded length limits the parser.
class TreeBuilder final : public YAML::EventHandler {
 public:
  bool failed() const { return !fault_.empty(); }
  const std::string& fault() const { return fault_; }
  int fault_line() const { return fault_line_; }
  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      Fail(LineOf(mark), "a second YAML document begins; a job file is one");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (Accept(mark, "", anchor)) Add({.line = LineOf(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(LineOf(mark),
         "aliases (*name) are not used in job files; write the "
         "value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& value) override {
    if (!Accept(mark, tag, anchor)) return;
    Add({.kind = YamlNode::Kind::kScalar,
         .line = LineOf(mark),
         .text = value,
         .quoted = tag == "!"});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  void Fail(int line, std::string fault) {
    if (failed()) return;
    fault_ = std::move(fault);
    fault_line_ = line;
  }

  bool Accept(const YAML::Mark& mark, const std::string& tag,
              YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      Fail(LineOf(mark),
           "anchors (&name) are not used in job files; write the "
           "value out");
    } else if (!tag.empty() && tag != "?" && tag != "!") {
      Fail(LineOf(mark),
           absl::StrCat("tags are not used in job files, got ", Quoted(tag)));
    } else if (++nodes_ > kMaxYamlNodes) {
      Fail(LineOf(mark), absl::StrCat("more than ", kMaxYamlNodes, " values"));
    }
    return !failed();
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    if (!Accept(mark, tag, anchor)) return;
    if (open_.size() >= kMaxYamlDepth) {
      Fail(LineOf(mark),
           absl::StrCat("nested deeper than ", kMaxYamlDepth, " levels"));
      return;
    }
    open_.push_back({.kind = kind, .line = LineOf(mark)});
  }

  void Close() {
    if (failed()) return;
    YamlNode node = std::move(open_.back());
    open_.pop_back();
    Add(std::move(node));
  }

  // Adds a finished node as the root, an item, a key or a key's value.
  void Add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    YamlNode& parent = open_.back();
    if (parent.kind == YamlNode::Kind::kSequence) {
      parent.items.push_back(std::move(node));
    } else if (parent.keys.size() > parent.items.size()) {
      // The parser gives a block value the block's line, and a missing value
      // the line of whatever follows.
      node.line = parent.keys.back().line;
      parent.items.push_back(std::move(node));
    } else if (node.kind == YamlNode::Kind::kScalar) {
      parent.keys.push_back({std::move(node.text), node.line});
    } else {
      Fail(node.line, "a key must be a name");
    }
  }

  YamlNode root_;
  std::vector<YamlNode> open_;  // from the root to the innermost
  size_t nodes_ = 0;
  int documents_ = 0;
  std::string fault_;
  int fault_line_ = 1;
};

// Whether blanks that contain a tab begin the line, from 1.
bool IndentedByTab(absl::string_view text, int line) {
  for (; line > 1 && !text.empty(); --line) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
  const size_t blanks = text.find_first_not_of(" \t");
  return absl::StrContains(text.substr(0, blanks), '\t');
}

// Runs the parser until the text ends or the builder has an error. Catches the
// library's exceptions.
absl::Status Parse(absl::string_view text, const YamlSource& source,
                   TreeBuilder* builder) {
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (!builder->failed() && parser.HandleNextDocument(*builder)) {
    }
    return absl::OkStatus();
  } catch (const YAML::Exception& e) {
    // A name pattern such as *.bias, which YAML takes for an alias.
    const bool alias =
        absl::StrContains(e.msg, "anchor") || absl::StrContains(e.msg, "alias");
    const char* hint = "";
    if (alias) hint = "; write a text that begins with * or & in quotes";
    if (IndentedByTab(text, LineOf(e.mark))) {
      hint = "; the line begins with a tab, and YAML wants spaces";
    }
    return absl::InvalidArgumentError(
        absl::StrCat(source.At(LineOf(e.mark)),
                     ": not valid YAML: ", absl::Utf8SafeCEscape(e.msg), hint));
  } catch (const std::exception& e) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.name, ": not valid YAML: ", e.what()));
  }
}

}  // namespace

std::string YamlSource::At(int line) const {
  return has_lines ? absl::StrCat(name, ":", line) : name;
}

absl::StatusOr<YamlNode> ParseYaml(absl::string_view text,
                                   const YamlSource& source) {
  if (text.size() > kMaxYamlBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.name, ": wants at most ", kMaxYamlBytes,
                     " bytes, got ", text.size()));
  }
  TreeBuilder builder;
  const absl::Status parsed = Parse(text, source, &builder);
  // An error of the builder comes before the parser's in the text.
  if (builder.failed()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.At(builder.fault_line()), ": ", builder.fault()));
  }
  TRIBUTARY_RETURN_IF_ERROR(parsed);
  return builder.TakeRoot();
}

}  // namespace tributary
