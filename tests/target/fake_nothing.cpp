// A shared library that has nothing to do with BridgeStan.
extern "C" __attribute__((visibility("default"))) int something_else() { return 1; }
