/* What Python.h needs to know of a 64-bit system if only its stable interface is used. With it the core is compiled for
 * other systems than this one, whose own pyconfig.h is not here. */

#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_UINTPTR_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_DOUBLE 8
#define SIZEOF_FLOAT 4
#define ALIGNOF_SIZE_T 8
#define ALIGNOF_LONG 8
#define ALIGNOF_MAX_ALIGN_T 16
#define STDC_HEADERS 1
#define HAVE_STDINT_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_STDDEF_H 1
#define HAVE_UINTPTR_T 1
#define HAVE_LONG_LONG 1
#define HAVE_PROTOTYPES 1
#define WITH_DOC_STRINGS 1

#ifdef _WIN32
#define MS_WIN32
#define MS_WIN64
#define MS_WINDOWS
#define NT_THREADS
#define SIZEOF_LONG 4
#define SIZEOF_WCHAR_T 2
#define HAVE_DECLSPEC_DLL
#define Py_ENABLE_SHARED
#else
#define SIZEOF_LONG 8
#define SIZEOF_WCHAR_T 4
#define HAVE_SSIZE_T 1
#define HAVE_UNISTD_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_PTHREAD_H 1
#define _GNU_SOURCE 1
#endif
