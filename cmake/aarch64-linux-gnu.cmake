# Cross-builds for aarch64 on a Debian x86-64 machine; tests run under qemu's user emulation. scripts/install-deps --aarch64
# installs the compiler, the emulator and the libraries' arm64 packages.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Programs find the loader and the libraries of the arm64 packages, which lie beside this machine's. The compiler's own in
# /usr/aarch64-linux-gnu are of another release of glibc: mixed with these, the first thread that is made never starts.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Programs (flatc, python) are this machine's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
