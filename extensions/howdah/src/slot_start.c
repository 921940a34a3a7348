/*-------------------------------------------------------------------------
 *
 * slot_start.c
 *		A server starts although logical slots are in its way.
 *
 * PostgreSQL does not start with a logical slot where wal_level is lower than
 * "logical". The agent drops users' slots when logical replication is turned
 * off, but a user may have the server restarted at the same moment, and a
 * database that does not start is worse than a slot that is gone. So before
 * PostgreSQL reads its slots, logical ones are renamed to what it takes for a
 * drop that was not finished, and it removes them. A crash in between leaves
 * either the slot or its removal.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/fd.h"

#include "slot.h"

#define SLOTS_DIR "pg_replslot"

/*
 * How the file "state" of a slot begins, since 9.4. PostgreSQL keeps the rest to
 * itself; what has another beginning is left to it.
 */
#define STATE_MAGIC 0x1051CA1

typedef struct StateBeginning
{
	uint32		magic;
	uint32		checksum;
	uint32		version;
	uint32		length;
	NameData	name;
	Oid			database;		/* of a logical slot */
} StateBeginning;

static bool is_logical(const char *slot);

/*
 * Of use in a postmaster that starts, which holds the lock of the data directory.
 * A server for a single user may be without the settings of the real one.
 */
void
howdah_clear_slots(void)
{
	DIR		   *dir;
	struct dirent *entry;
	bool		changed = false;

	if (IsUnderPostmaster || !IsPostmasterEnvironment ||
		wal_level >= WAL_LEVEL_LOGICAL)
		return;
	dir = AllocateDir(SLOTS_DIR);
	while ((entry = ReadDirExtended(dir, SLOTS_DIR, LOG)) != NULL)
	{
		char		from[MAXPGPATH];
		char		to[MAXPGPATH];

		if (strchr(entry->d_name, '.') != NULL || !is_logical(entry->d_name))
			continue;
		snprintf(from, sizeof(from), "%s/%s", SLOTS_DIR, entry->d_name);
		snprintf(to, sizeof(to), "%s/%s.tmp", SLOTS_DIR, entry->d_name);
		if (rename(from, to) != 0)
		{
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not rename file \"%s\" to \"%s\": %m", from, to)));
			continue;
		}
		changed = true;
		ereport(LOG,
				(errmsg("dropped the logical replication slot \"%s\"", entry->d_name),
				 errdetail("PostgreSQL does not start with it where wal_level is lower than \"logical\".")));
	}
	if (dir != NULL)
		FreeDir(dir);
	if (changed)
		fsync_fname(SLOTS_DIR, true);
}

static bool
is_logical(const char *slot)
{
	char		path[MAXPGPATH];
	StateBeginning state;
	ssize_t		length;
	int			file;

	snprintf(path, sizeof(path), "%s/%s/state", SLOTS_DIR, slot);
	file = OpenTransientFile(path, O_RDONLY | PG_BINARY);
	if (file < 0)
		return false;
	length = read(file, &state, sizeof(state));
	CloseTransientFile(file);
	return length == sizeof(state) && state.magic == STATE_MAGIC &&
		strcmp(NameStr(state.name), slot) == 0 && OidIsValid(state.database);
}
