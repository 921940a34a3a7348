/*-------------------------------------------------------------------------
 *
 * extension_script.h
 *		What the scripts of extensions find, and what they may do
 *		(extension_script.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOWDAH_EXTENSION_SCRIPT_H
#define HOWDAH_EXTENSION_SCRIPT_H

/* before a script runs */
extern void howdah_check_script_version(const char *extension, const char *version);
extern void howdah_check_script_search_path(const char *extension);
extern void howdah_check_script_update(const char *extension, const char *version);

/* when a user has made or renamed a function */
extern void howdah_check_function_name(Oid function);

/* for each statement of a script that runs on behalf of this user */
extern void howdah_check_script_statement(Node *statement, Oid user);

/* for each relation that a query reads or writes (extension_query.c) */
extern void howdah_check_script_relation(Oid relation, bool write);

/* is this one of PostGIS's extensions, which come in one version together? */
extern bool howdah_is_postgis(const char *extension);

#endif							/* HOWDAH_EXTENSION_SCRIPT_H */
