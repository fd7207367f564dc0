// Linked with every test under the thread sanitizer: forked members start threads of their own, which it allows only when asked.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
