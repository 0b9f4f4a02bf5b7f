/* A C program's use of the delegate's header, for c_api_test. */
#ifdef __cplusplus
extern "C" {
#endif

/* 1 where a delegate with so many threads could be made. */
int CreateAndDeleteFromC(int threads);

#ifdef __cplusplus
}
#endif
