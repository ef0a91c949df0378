/* The op autoplace::Schedule, and what a program can ask about it through plain C.
 *
 * (contract to come) */
#ifndef OV_AUTOPLACE_SCHEDULE_API_H
#define OV_AUTOPLACE_SCHEDULE_API_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OV_AUTOPLACE_API __attribute__((visibility("default")))

/* Makes a plugin known to the library's own Core, which compiles submodels. Returns 0, or 1 where the name is
 * that of another plugin or the Core refuses it; ov_autoplace_last_error() then says why. */
OV_AUTOPLACE_API int ov_autoplace_register_plugin(const char* name, const char* library);

/* Writes what is known of the last run of the op with this friendly name, as JSON in UTF-8, and returns its
 * length with the ending zero. If `size` is less than that, nothing is written. 0: no such op is compiled. */
OV_AUTOPLACE_API size_t ov_autoplace_profile(const char* op, char* buffer, size_t size);

/* The sentence of this thread's last call that failed; it stays valid until the next one. */
OV_AUTOPLACE_API const char* ov_autoplace_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
