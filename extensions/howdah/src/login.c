/*-------------------------------------------------------------------------
 *
 * login.c
 *		The platform's roles do not log in from inside of a server.
 *
 * The platform's superuser logs in by the operating-system user alone, and
 * that is the server's own too. So whatever has a server open a connection to
 * a socket (dblink, postgres_fdw, a subscription, a program that it started)
 * would come in as the superuser. PostgreSQL refuses a user's connection that
 * used no password, but only once it stands: by then a session of the platform
 * has begun, with settings that the user chose.
 *
 * The kernel tells which process is on the other side of a socket. Where that
 * is a server, or was started by one, the platform's roles are refused: this
 * server, and any other, as other databases may have the same user.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include <sys/socket.h>

#include "libpq/auth.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "replication/walsender.h"
#include "storage/fd.h"

/* more generations than any process has */
#define MAX_ANCESTORS 64

static ClientAuthentication_hook_type next_client_authentication;

static void client_authentication(Port *port, int status);
static bool is_kept_out(const char *name);
static bool comes_from_server(pid_t pid);
static bool read_process(pid_t pid, char *name, size_t size, pid_t *parent);

void
howdah_login_init(void)
{
	next_client_authentication = ClientAuthentication_hook;
	ClientAuthentication_hook = client_authentication;
}

/* ClientAuthentication_hook */
static void
client_authentication(Port *port, int status)
{
	struct ucred peer;
	socklen_t	size = sizeof(peer);

	if (next_client_authentication)
		next_client_authentication(port, status);

	if (status != STATUS_OK || port->raddr.addr.ss_family != AF_UNIX ||
		!is_kept_out(port->user_name))
		return;
	if (getsockopt(port->sock, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		ereport(FATAL,
				(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
				 errmsg("could not get peer credentials: %m")));
	if (comes_from_server(peer.pid))
		ereport(FATAL,
				(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
				 errmsg("role \"%s\" cannot log in from a server", port->user_name),
				 errdetail("The connection was opened by a PostgreSQL server, or by a program that one started.")));
}

/*
 * Is this one of the platform's roles, where it could run SQL? A standby is a
 * server that connects; pg_hba.conf says who may replicate, and from where.
 */
static bool
is_kept_out(const char *name)
{
	if (am_walsender && (!am_db_walsender || strcmp(name, howdah_admin_role) != 0))
		return false;
	return howdah_is_protected_name(name);
}

/*
 * Is this process a server, or was it started by one? A process that is out of
 * sight, in another namespace or gone, is none of this server's.
 */
static bool
comes_from_server(pid_t pid)
{
	for (int i = 0; i < MAX_ANCESTORS && pid > 1; i++)
	{
		char		name[64];
		pid_t		parent;

		if (pid == PostmasterPid)
			return true;
		if (!read_process(pid, name, sizeof(name), &parent))
			return false;
		if (strcmp(name, "postgres") == 0)
			return true;
		pid = parent;
	}
	return false;
}

/* the name of a process and its parent: "PID (NAME) STATE PARENT ..." */
static bool
read_process(pid_t pid, char *name, size_t size, pid_t *parent)
{
	char		path[64];
	char		text[512];
	char	   *begin;
	char	   *end;
	size_t		length;
	FILE	   *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
	file = AllocateFile(path, "r");
	if (file == NULL)
		return false;
	length = fread(text, 1, sizeof(text) - 1, file);
	FreeFile(file);
	text[length] = '\0';

	/* the name may contain anything, parentheses too */
	begin = strchr(text, '(');
	end = strrchr(text, ')');
	if (begin == NULL || end == NULL || end < begin)
		return false;
	*end = '\0';
	strlcpy(name, begin + 1, size);
	return sscanf(end + 1, " %*c %d", parent) == 1;
}
