#include "tools/inputs/input_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fuselite::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseInputLayersTest, JoinsWhatTheFlagsSayOfAName) {
  const auto layers = ParseInputLayers({.names = "a,b",
                                        .shapes = "1,2,3:4",
                                        .ranges = "b,-1.5,2:c,0,255",
                                        .files = "a:x.npy,in::put:0:y"});
  ASSERT_TRUE(layers.ok()) << layers.status().message();
  ASSERT_EQ(layers->size(), 4u);
  EXPECT_EQ((*layers)[0].name, "a");
  EXPECT_THAT((*layers)[0].shape, ElementsAre(1, 2, 3));
  EXPECT_EQ((*layers)[0].file, "x.npy");
  EXPECT_FALSE((*layers)[0].has_range);
  EXPECT_THAT((*layers)[1].shape, ElementsAre(4));
  EXPECT_TRUE((*layers)[1].has_range);
  EXPECT_EQ((*layers)[1].low, -1.5);
  EXPECT_EQ((*layers)[1].high, 2);
  EXPECT_EQ((*layers)[2].name, "c");
  EXPECT_FALSE((*layers)[2].has_shape);
  // A double colon is one of the name; what follows a single one is the file.
  EXPECT_EQ((*layers)[3].name, "in:put");
  EXPECT_EQ((*layers)[3].file, "0:y");
  const auto colons = ParseInputLayers({.ranges = "x::0,0,1:y::,2,3"});
  ASSERT_TRUE(colons.ok()) << colons.status().message();
  ASSERT_EQ(colons->size(), 2u);
  EXPECT_EQ((*colons)[0].name, "x:0");
  EXPECT_EQ((*colons)[0].high, 1);
  EXPECT_EQ((*colons)[1].name, "y:");
  EXPECT_EQ((*colons)[1].low, 2);
  EXPECT_TRUE(ParseInputLayers({})->empty());
  const auto named = ParseInputLayers({.named_shapes = {"in:0:1,2", "3,4", ""}});
  ASSERT_TRUE(named.ok()) << named.status().message();
  ASSERT_EQ(named->size(), 3u);
  EXPECT_EQ((*named)[0].name, "in:0");
  EXPECT_THAT((*named)[0].shape, ElementsAre(1, 2));
  EXPECT_EQ((*named)[1].place, 0);
  EXPECT_THAT((*named)[1].shape, ElementsAre(3, 4));
  EXPECT_EQ((*named)[2].place, 1);
  EXPECT_TRUE((*named)[2].has_shape);
}

TEST(ParseInputLayersTest, ErrorsNameTheFlag) {
  const auto message = [](const InputLayerFlags& flags) {
    return std::string(ParseInputLayers(flags).status().message());
  };
  const auto with = [](std::string names, std::string shapes, std::string ranges = {},
                       std::string files = {}) {
    return InputLayerFlags{names, shapes, ranges, files, {}};
  };
  EXPECT_THAT(message(with("a,", "")), HasSubstr("--input_layer: "));
  EXPECT_THAT(message(with("a", "1:2")), HasSubstr("2 shapes for the 1 names"));
  EXPECT_THAT(message(with("a", "1,")), HasSubstr("'' is no dimension"));
  EXPECT_THAT(message(with("a", "1,-2")), HasSubstr("'-2' is no dimension"));
  EXPECT_THAT(message(with("a", "1,99999999999")), HasSubstr("is no dimension"));
  EXPECT_THAT(message(with("a", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1")), HasSubstr("is no shape"));
  for (const char* range :
       {"a", "a,1", "a,1,2,3", "a,x,1", "a,nan,1", "a,0,inf", ":", "a,0,1:", "::", "x:0,0,1"}) {
    EXPECT_THAT(message(with("", "", range)), HasSubstr("is not NAME,LOW,HIGH")) << range;
  }
  EXPECT_THAT(message(with("", "", "a,2,1")), HasSubstr("'a,2,1' has a LOW above its HIGH"));
  for (const char* file : {"a", "a:", ":x", "a::b", ","}) {
    EXPECT_THAT(message(with("", "", "", file)), HasSubstr("is not NAME:FILE")) << file;
  }
}

}  // namespace
}  // namespace fuselite::tools
