// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/page/markup.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(MarkupTest, TextAndAttributesAreEscaped) {
  Markup out;
  out.Element("p", {{"title", "a \"b\" & <c>"}}, "1 < 2 & \"3\" > 2\x01");
  EXPECT_EQ(out.Take(),
            "<p title=\"a &quot;b&quot; &amp; &lt;c&gt;\">"
            "1 &lt; 2 &amp; &quot;3&quot; &gt; 2 </p>\n");
}

TEST(MarkupTest, TagsCloseInTheirOrder) {
  Markup out;
  out.Open("ul").Open("li").Text("x").Close().Empty("br").Close();
  EXPECT_EQ(out.Take(), "<ul><li>x</li>\n<br/>\n</ul>\n");
}

TEST(MarkupDeathTest, ATagThatIsLeftOpenIsOurBug) {
  Markup out;
  out.Open("p");
  EXPECT_DEATH(out.Take(), "");
}

TEST(MarkupTest, CoordinatesAreShort) {
  EXPECT_EQ(Coordinate(3), "3");
  EXPECT_EQ(Coordinate(12.5), "12.5");
  EXPECT_EQ(Coordinate(0.125), "0.12");
  EXPECT_EQ(Coordinate(-0.001), "0");
  EXPECT_EQ(Coordinate(100), "100");
}

}  // namespace
}  // namespace tributary
