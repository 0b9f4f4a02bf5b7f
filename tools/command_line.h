/* The command line as a function of the library, so that the program `fuselite` and the library are
 * one copy of the kernels. Not part of the public interface: the program and the library are of one
 * build. */
#ifndef FUSELITE_TOOLS_COMMAND_LINE_H_
#define FUSELITE_TOOLS_COMMAND_LINE_H_

#include "fuselite/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the command that `argv` names and returns the exit status: 0, 1 where it failed, 2 where it
 * is used wrongly. Prints to standard output and, where something is wrong, one line to standard
 * error. To be called once in a process. */
FUSELITE_EXPORT int FuseliteCommandLine(int argc, char** argv);

#ifdef __cplusplus
}
#endif

#endif /* FUSELITE_TOOLS_COMMAND_LINE_H_ */
