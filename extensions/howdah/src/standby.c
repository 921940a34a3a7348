/*-------------------------------------------------------------------------
 *
 * standby.c
 *		Who may confirm commits.
 *
 * PostgreSQL takes the confirmation of whoever receives WAL under a name of
 * synchronous_standby_names, or of anybody where that is '*', which Patroni
 * sets in strict mode while no standby is there: a read replica, a subscriber
 * or a backup would then do for a standby. None of them is ever promoted in
 * its place, so a commit that only they have can be lost.
 *
 * Members of a database have names that begin with its cluster_name and a
 * dot, or were given by an older release: m1, m2 and so on. The WAL sender of
 * anybody else has no synchronous standbys: the setting is empty in its own
 * process alone, and so it counts for nobody.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "libpq/auth.h"
#include "libpq/libpq-be.h"
#include "replication/walsender.h"
#include "utils/guc.h"

static ClientAuthentication_hook_type next_client_authentication;

static void client_authentication(Port *port, int status);

void
howdah_standby_init(void)
{
	next_client_authentication = ClientAuthentication_hook;
	ClientAuthentication_hook = client_authentication;
}

/* ClientAuthentication_hook: before the WAL sender looks at the setting */
static void
client_authentication(Port *port, int status)
{
	if (next_client_authentication)
		next_client_authentication(port, status);

	/* a reload of the configuration does not change what is overridden */
	if (am_walsender && !howdah_is_members_name(port->application_name))
		SetConfigOption("synchronous_standby_names", "", PGC_SIGHUP,
						PGC_S_OVERRIDE);
}

/* is this the name of a member of this database? a server without a name has no members */
bool
howdah_is_members_name(const char *name)
{
	size_t		length = cluster_name != NULL ? strlen(cluster_name) : 0;

	if (length == 0)
		return true;
	if (name == NULL)
		return false;
	if (strncmp(name, cluster_name, length) == 0 && name[length] == '.')
		return true;
	return name[0] == 'm' && name[1] != '\0' &&
		strspn(name + 1, "0123456789") == strlen(name + 1);
}
