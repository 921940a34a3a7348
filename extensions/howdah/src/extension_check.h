/*-------------------------------------------------------------------------
 *
 * extension_check.h
 *		What a user's statement on extensions must not be (extension_check.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOWDAH_EXTENSION_CHECK_H
#define HOWDAH_EXTENSION_CHECK_H

extern void howdah_check_extension_allowed(const char *name);
extern void howdah_check_extension_everywhere(const char *name);
extern void howdah_check_extension_newest(Oid extension, const char *before);
extern char *howdah_extension_version(Oid extension);
extern void howdah_check_extension_version(const char *name, const char *version,
										   const char *newest);
extern void howdah_check_extension_owner(const char *name);
extern void howdah_check_extension_database(const char *name);
extern void howdah_check_extension_not_system_schema(const char *name);
extern void howdah_check_extension_create_in_schema(const char *name);

#endif
