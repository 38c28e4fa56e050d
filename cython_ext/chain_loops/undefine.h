/* Removes the macros that chain.c has defined for one instruction set. */
#undef NAME
#undef TARGET
#undef LANES
#undef MAX
#undef MIN
#undef WHERE_MORE
#undef LOWS
#undef HIGHS
#undef FIRST_PAIRS
#undef LAST_PAIRS
#undef LOAD_FOURS
#undef STORE_FOURS
#undef EQUAL_BITS
