#include "runtime/cpu/cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cpu/cpu_topology.h"
#include "runtime/threads/parallel.h"

namespace fuselite {
namespace {

using internal::CgroupCores;
using internal::ReadCpuInfoFrom;

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
  void AddCache(int cpu, int index, int level, const std::string& type, const std::string& size) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                               "/cache/index" + std::to_string(index);
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
  AddCache(0, 0, 1, "Data", "48K");
  AddCache(0, 1, 1, "Instruction", "32K");
  AddCache(0, 2, 2, "Unified", "2048K");
  AddCache(0, 3, 3, "Unified", "32M");
  Write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n");
  const CpuInfo all = ReadCpuInfoFrom(root_, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(all.logical_cores, 8);
  EXPECT_EQ(all.physical_cores, 4);
  EXPECT_EQ(all.l1d_bytes, 48 << 10);
  EXPECT_EQ(all.l2_bytes, 2 << 20);
  EXPECT_EQ(all.l3_bytes, 32 << 20);
  EXPECT_EQ(all.model, "Some CPU @ 2 GHz");
  AddCpu(8, 0, 0);
  AddCache(8, 0, 2, "Unified", "1M");
  EXPECT_EQ(ReadCpuInfoFrom(root_, {8, 0}).l2_bytes, 1 << 20) << "of the first CPU";
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
  EXPECT_EQ(ReadCpuInfoFrom(root_, {}).physical_cores, 1);
}

TEST_F(TopologyTest, WhatIsNoNumberIsNone) {
  for (const int cpu : {0, 1}) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    Write(folder + "/topology/core_id", cpu == 0 ? "no number\n" : "99999999999999999999\n");
  }
  EXPECT_EQ(ReadCpuInfoFrom(root_, {0, 1}).physical_cores, 2);
  for (const auto& [size, bytes] : {std::pair("32768", 32768), std::pair("32K", 32768),
                                    std::pair("1M", 1 << 20), std::pair("much", 0)}) {
    AddCache(0, 0, 1, "Data", size);
    EXPECT_EQ(ReadCpuInfoFrom(root_, {0}).l1d_bytes, bytes) << size;
  }
}

// Machines whose kernels take masks of so many CPUs and more, and run the process on these.
TEST(AllowedCpus, AreThoseOfAMaskThatIsLongEnough) {
  struct Machine {
    size_t shortest;
    std::vector<int> cpus;
  };
  const Machine machines[] = {
      {1, {0}}, {1024, {3, 63, 64, 1023}}, {1025, {0, 1500}}, {1 << 16, {5, 65535}}};
  for (const Machine& machine : machines) {
    const auto read = [&](std::span<unsigned long> mask) {
      constexpr size_t kBits = 8 * sizeof(unsigned long);
      if (mask.size() * kBits < machine.shortest) return false;
      for (const int cpu : machine.cpus) mask[cpu / kBits] |= 1ul << cpu % kBits;
      return true;
    };
    EXPECT_EQ(internal::AllowedCpusOf(read), machine.cpus) << machine.shortest;
  }
  // All that there are, from 0 on, where none is long enough or none is set.
  for (const bool answers : {false, true}) {
    const std::vector<int> all =
        internal::AllowedCpusOf([&](std::span<unsigned long>) { return answers; });
    EXPECT_GE(static_cast<int>(all.size()), AllowedCores());
    EXPECT_EQ(all.front(), 0);
    EXPECT_EQ(all.back() + 1, static_cast<int>(all.size()));
  }
}

TEST_F(TopologyTest, TheModelIsWhatFollowsTheColon) {
  for (const auto& [text, model] : {std::pair("model name\t: A CPU\nmodel name\t: B\n", "A CPU"),
                                    std::pair("model name\t:\n", ""), std::pair("model name\n", ""),
                                    std::pair("vendor_id\t: X\n", "")}) {
    Write("/proc/cpuinfo", text);
    EXPECT_EQ(ReadCpuInfoFrom(root_, {0}).model, model) << text;
  }
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

// Cores that a group of each version allows by what its files say.
TEST_F(TopologyTest, QuotasAreRoundedUp) {
  struct {
    std::string quota, period;
    int cores;
  } const kCases[] = {{"100000", "100000", 1},  {"100001", "100000", 2},
                      {"99999", "100000", 1},   {"9223372036854775807", "100000", 1 << 20},
                      {"max", "100000", 0},     {"-1", "100000", 0},
                      {"-300000", "100000", 0}, {"0", "100000", 0},
                      {"100000", "0", 0},       {"100000", "-100000", 0},
                      {"100000", "x", 0},       {"100000", "", 0},
                      {"many", "cores", 0}};
  for (const auto& [quota, period, cores] : kCases) {
    SCOPED_TRACE(quota + " " + period);
    MountVersion2("/g");
    Write("/sys/fs/cgroup/g/cpu.max", quota + " " + period + "\n");
    EXPECT_EQ(CgroupCores(root_), cores);
    Write("/proc/self/cgroup", "5:cpu:/\n");
    Write("/proc/self/mountinfo", "40 30 0:33 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
    Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota + "\n");
    Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period + "\n");
    EXPECT_EQ(CgroupCores(root_), cores);
  }
  MountVersion2("/g");
  Write("/sys/fs/cgroup/g/cpu.max", "100000\n");
  EXPECT_EQ(CgroupCores(root_), 0) << "without a period";
}

// Group /one of the version 2 mount allows one core, /two two and so on; those of a version 1 mount
// elsewhere nine more.
TEST_F(TopologyTest, OnlyTheProcessesOwnGroupsCount) {
  const std::string cpu = "40 30 0:33 / /cpu ro - cgroup cgroup rw,cpuacct,cpu\n";
  const std::string memory = "41 30 0:34 / /two ro - cgroup cgroup rw,memory,cpuset\n";
  const std::string version2 = "30 23 0:26 / /v2 rw shared:4 - cgroup2 cgroup2 rw,cpu\n";
  const std::string below = "30 23 0:26 /deep /v2 rw - cgroup2 cgroup2 rw\n";
  const char* const names[] = {"", "/one", "/two", "/three", "/four"};
  for (int cores = 1; cores <= 4; ++cores) {
    const std::string limit = std::to_string(100 * cores) + " 100\n";
    Write(std::string("/v2") + names[cores] + "/cpu.max", limit);
    Write(std::string("/v2/four") + names[cores] + "/cpu.max", limit);
    Write(std::string("/cpu") + names[cores] + "/cpu.max", "90" + limit);
    Write(std::string(names[cores]) + "/cpu.max", limit);
  }
  Write("/cpu/cpu.max", "1000000 100\n");
  struct {
    std::string groups, mounts;
    int cores;
  } const kCases[] = {
      {"0::/three\n", version2, 3},
      {"0::/four/two\n", version2, 2},
      {"0::/two/four\n", version2, 2},
      {"0::/\n", version2, 0},
      {"0::/three\n", cpu, 0},
      {"0::/three\n", "", 0},
      {"5:cpu:/one\n", cpu, 901},
      {"5:cpuacct,cpu:/two\n", cpu, 902},
      {"5:cpu,cpuacct:/two\n", memory + cpu, 902},
      {"5:cpu:/two\n", version2 + memory, 0},
      {"4:memory:/one\n5:cpu:/three\n", memory + cpu, 903},
      {"4:cpuset:/one\n", memory + cpu, 0},
      {"4:memory:/one\n", cpu, 0},
      {"0::/three\n5:cpu:/one\n", version2 + cpu, 3},
      {"5:cpu:/one\n0::/three\n", cpu + version2, 3},
      {"0::/deep/three\n", below, 3},
      {"0::/deep\n", below, 0},
      {"0::/elsewhere/three\n", below, 0},
      {"0::/keep/three\n", below, 0},
      {"0::/three\n", "0 cgroup2 x / /one\n" + version2, 3},
      {"nonsense\n\n::\n", version2 + cpu, 0},
      {"0:\n", version2 + "30 23 0:26 / /one - cgroup2 cgroup2 rw\n", 0},
      {"cpu:/one\n", version2 + cpu, 0},
      {"5:cpu\n", version2 + cpu, 0},
      {"/one:cpu\n", version2 + cpu, 0},
  };
  for (const auto& [groups, mounts, cores] : kCases) {
    Write("/proc/self/cgroup", groups);
    Write("/proc/self/mountinfo", mounts);
    EXPECT_EQ(CgroupCores(root_), cores) << groups << mounts;
  }
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
