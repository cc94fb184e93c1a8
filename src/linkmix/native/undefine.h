/* Ends what density.h began. */

#undef PANEL
#undef INLINE
#undef REAL
#undef GAUSS
#undef vec
#undef ivec
#undef uvec
#undef LOAD
#undef STORE
#undef CHOOSE
#undef MAXIMUM
#undef ROOT
#undef FRACTION_BITS
#undef EXPONENT_BIAS
#undef SHIFT
#undef LOWEST
#undef SINGLE
#undef W
#undef FN
#undef TARGET
