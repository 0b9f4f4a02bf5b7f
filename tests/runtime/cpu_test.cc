#include "runtime/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/cpu_topology.h"

namespace fuselite {
namespace {

using internal::CgroupCores;
using internal::ParseCpuList;
using internal::ReadCpuInfoFrom;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuList, ReadsRangesAndStopsAtNonsense) {
  EXPECT_THAT(ParseCpuList("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(ParseCpuList("5\n"), ElementsAre(5));
  EXPECT_THAT(ParseCpuList("1,x"), ElementsAre(1));
  EXPECT_THAT(ParseCpuList("0-2000000000"), IsEmpty());
  EXPECT_THAT(ParseCpuList(""), IsEmpty());
}

// A made-up machine below a folder of its own.
class TopologyTest : public testing::Test {
 protected:
  TopologyTest() {
    root_ = testing::TempDir() + "fuselite_topology_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  ~TopologyTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  void AddCpu(int cpu, int package, int core) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    Write(folder + "/topology/core_id", std::to_string(core) + "\n");
    Write(folder + "/topology/physical_package_id", std::to_string(package) + "\n");
  }
  void AddCache(int index, int level, const std::string& type, const std::string& size) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    Write(folder + "/level", std::to_string(level) + "\n");
    Write(folder + "/type", type + "\n");
    Write(folder + "/size", size + "\n");
  }
  // Version 2, mounted where systemd puts it, with the process in `group`.
  void MountVersion2(const std::string& group) {
    Write("/proc/self/cgroup", "0::" + group + "\n");
    Write("/proc/self/mountinfo",
          "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  std::string root_;
};

TEST_F(TopologyTest, CountsPhysicalCoresOfTheAllowedCpus) {
  for (int cpu = 0; cpu < 8; ++cpu)
    AddCpu(cpu, cpu / 4, cpu % 2);  // 2 packages, 2 cores, 2 threads
  AddCache(0, 1, "Data", "48K");
  AddCache(1, 1, "Instruction", "32K");
  AddCache(2, 2, "Unified", "2048K");
  AddCache(3, 3, "Unified", "32M");
  Write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n");
  const CpuInfo all = ReadCpuInfoFrom(root_, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(all.logical_cores, 8);
  EXPECT_EQ(all.physical_cores, 4);
  EXPECT_EQ(all.l1d_bytes, 48 << 10);
  EXPECT_EQ(all.l2_bytes, 2 << 20);
  EXPECT_EQ(all.l3_bytes, 32 << 20);
  EXPECT_EQ(all.model, "Some CPU @ 2 GHz");
  const CpuInfo siblings = ReadCpuInfoFrom(root_, {1, 3});
  EXPECT_EQ(siblings.logical_cores, 2);
  EXPECT_EQ(siblings.physical_cores, 1);
}

TEST_F(TopologyTest, WithoutSysEveryCpuIsACore) {
  const CpuInfo info = ReadCpuInfoFrom(root_, {0, 1, 5});
  EXPECT_EQ(info.logical_cores, 3);
  EXPECT_EQ(info.physical_cores, 3);
  EXPECT_EQ(info.l2_bytes, 0);
  EXPECT_EQ(info.model, "");
  EXPECT_EQ(ReadCpuInfoFrom(root_, {}).logical_cores, 1);
}

TEST_F(TopologyTest, Version2QuotaOfAnOuterGroupCounts) {
  MountVersion2("/outer/inner");
  Write("/sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
  Write("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupCores(root_), 3);
  Write("/sys/fs/cgroup/outer/inner/cpu.max", "50000 100000\n");
  EXPECT_EQ(CgroupCores(root_), 1);
  EXPECT_EQ(ReadCpuInfoFrom(root_, {0, 1, 2, 3}).logical_cores, 1);
}

TEST_F(TopologyTest, Version1QuotaInAContainer) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/docker/ab12\n4:memory:/docker/ab12\n");
  Write("/proc/self/mountinfo",
        "40 30 0:33 /docker/ab12 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCores(root_), 2);
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(CgroupCores(root_), 0);
}

TEST_F(TopologyTest, MalformedFilesMeanNoLimit) {
  MountVersion2("/g");
  Write("/sys/fs/cgroup/g/cpu.max", "many cores\n");
  EXPECT_EQ(CgroupCores(root_), 0);
  Write("/sys/fs/cgroup/g/cpu.max", "100000 0\n");
  EXPECT_EQ(CgroupCores(root_), 0);
  Write("/sys/fs/cgroup/g/cpu.max", "100000\n");
  EXPECT_EQ(CgroupCores(root_), 0);
  Write("/proc/self/cgroup", "nonsense\n\n::\n");
  EXPECT_EQ(CgroupCores(root_), 0);
}

TEST(CpuInfo, FollowsTheAffinityOfTheCaller) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_LE(ReadCpuInfo().logical_cores, CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(ReadCpuInfo().logical_cores, 1);
  EXPECT_EQ(ReadCpuInfo().physical_cores, 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

}  // namespace
}  // namespace fuselite
