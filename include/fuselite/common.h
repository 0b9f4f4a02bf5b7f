/* What the headers of fuselite share. */
#ifndef FUSELITE_COMMON_H_
#define FUSELITE_COMMON_H_

#if defined(__GNUC__)
#define FUSELITE_EXPORT __attribute__((visibility("default")))
#else
#define FUSELITE_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs: "0.1.0". For any thread, at any time. */
FUSELITE_EXPORT const char* FuseliteVersion(void);

/* Ends the helper threads that wait for work, soon after the call; the next run makes new ones.
 * They sleep while they wait, so this is for programs that must not have them: before changing
 * user, say, or at a plug-in's end. For any thread, at any time. */
FUSELITE_EXPORT void FuseliteReleaseThreads(void);

#ifdef __cplusplus
}
#endif

#endif /* FUSELITE_COMMON_H_ */
