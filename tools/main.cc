// The program `fuselite`: everything is in the library.
#include "tools/command_line.h"

int main(int argc, char** argv) { return FuseliteCommandLine(argc, argv); }
