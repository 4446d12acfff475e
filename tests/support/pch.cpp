// Only the precompiled header of this target matters: every test program reuses it.
