/*-------------------------------------------------------------------------
 *
 * extension_grant.h
 *		Privileges that master users get on a new extension's objects.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOWDAH_EXTENSION_GRANT_H
#define HOWDAH_EXTENSION_GRANT_H

/* to be called as the admin role, once the extension is there */
extern void howdah_grant_extension(Oid extension);

/* does the admin role stay the owner of this extension? */
extern bool howdah_keeps_extension(const char *name);

#endif							/* HOWDAH_EXTENSION_GRANT_H */
