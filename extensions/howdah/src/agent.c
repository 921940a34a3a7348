/*-------------------------------------------------------------------------
 *
 * agent.c
 *		A conversation with the agent of the host.
 *
 * What takes secrets is done by the agent, outside of the database: it
 * listens on a socket of its own for each member, which howdah.agent_socket
 * names and only the member's operating-system user may open. Whoever gets
 * hold of that user can say there what SQL can say, and no more.
 *
 * Both sides send frames: a byte for the kind, four for the length of what
 * follows, the highest first. No wait here outlives a cancel, or AGENT_PATIENCE.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "agent.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

/* the longest content of a frame, for both sides */
#define MAX_FRAME (64 * 1024)

/* the agent gives up what does not go on long before that */
#define AGENT_PATIENCE (180 * 1000L)

static char *agent_socket;

static bool wait_until(Agent *agent, int event);
static void send_frame(Agent *agent, char kind, const char *content, size_t length);
static void send_all(Agent *agent, const char *data, size_t length);
static void receive_all(Agent *agent, char *data, size_t length);
static void check_refused(Agent *agent);
static void refuse_as_told(Agent *agent);
static void lost(void);

/* define the setting, which is not for users */
void
howdah_agent_init(void)
{
	DefineCustomStringVariable("howdah.agent_socket",
							   "Socket on which the agent of the host does what takes secrets.",
							   NULL, &agent_socket, "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);
}

/* connect; the caller closes it, also after an error */
Agent *
howdah_agent_open(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	Agent	   *agent = palloc0(sizeof(Agent));

	if (agent_socket == NULL || agent_socket[0] == '\0' ||
		strlen(agent_socket) >= sizeof(address.sun_path))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("no agent works for this server")));
	strcpy(address.sun_path, agent_socket);
	initStringInfo(&agent->out);
	initStringInfo(&agent->in);
	if (!AcquireExternalFD())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("too many files are open in this session")));
	agent->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (agent->socket == PGINVALID_SOCKET ||
		connect(agent->socket, (struct sockaddr *) &address, sizeof(address)) != 0)
	{
		int			save_errno = errno;

		howdah_agent_close(agent);
		errno = save_errno;
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("the agent of the host cannot be reached: %m"),
				 errhint("Try again in a moment.")));
	}
	return agent;
}

/* hang up; the agent gives up what has not come to its end */
void
howdah_agent_close(Agent *agent)
{
	if (agent->socket != PGINVALID_SOCKET)
		close(agent->socket);
	agent->socket = PGINVALID_SOCKET;
	ReleaseExternalFD();
}

/* ask for something, in words of the server's encoding; NULL is an empty one */
void
howdah_agent_ask(Agent *agent, char request, int count, const char *const *words)
{
	StringInfoData content;

	initStringInfo(&content);
	for (int i = 0; i < count; i++)
	{
		const char *word = words[i] != NULL ? words[i] : "";

		word = pg_server_to_any(word, strlen(word), PG_UTF8);
		appendBinaryStringInfo(&content, word, strlen(word) + 1);
	}
	if (content.len > MAX_FRAME)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the name of the file is too long")));
	send_frame(agent, request, content.data, content.len);
	pfree(content.data);
}

/* send data, in frames that are as full as can be */
void
howdah_agent_send(Agent *agent, const char *data, size_t length)
{
	while (length > 0)
	{
		size_t		part = Min(length, MAX_FRAME - (size_t) agent->out.len);

		appendBinaryStringInfo(&agent->out, data, part);
		data += part;
		length -= part;
		if (agent->out.len == MAX_FRAME)
		{
			send_frame(agent, AGENT_DATA, agent->out.data, agent->out.len);
			resetStringInfo(&agent->out);
		}
	}
}

/* say that this was all */
void
howdah_agent_end(Agent *agent)
{
	if (agent->out.len > 0)
		send_frame(agent, AGENT_DATA, agent->out.data, agent->out.len);
	resetStringInfo(&agent->out);
	send_frame(agent, AGENT_END, NULL, 0);
}

/* return the kind of the next frame, whose content is agent->in then */
char
howdah_agent_receive(Agent *agent)
{
	char		head[5];
	uint32		length;

	receive_all(agent, head, sizeof(head));
	memcpy(&length, head + 1, sizeof(length));
	length = pg_ntoh32(length);
	if (length > MAX_FRAME)
		lost();
	resetStringInfo(&agent->in);
	enlargeStringInfo(&agent->in, length);
	receive_all(agent, agent->in.data, length);
	agent->in.len = length;
	agent->in.data[length] = '\0';
	if (head[0] == AGENT_ERROR)
		refuse_as_told(agent);
	return head[0];
}

static void
send_frame(Agent *agent, char kind, const char *content, size_t length)
{
	char		head[5] = {kind};
	uint32		size = pg_hton32((uint32) length);

	check_refused(agent);
	memcpy(head + 1, &size, sizeof(size));
	send_all(agent, head, sizeof(head));
	send_all(agent, content, length);
}

static void
send_all(Agent *agent, const char *data, size_t length)
{
	while (length > 0)
	{
		ssize_t		sent = send(agent->socket, data, length, MSG_NOSIGNAL);

		if (sent > 0)
		{
			data += sent;
			length -= sent;
		}
		else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		{
			if (wait_until(agent, WL_SOCKET_WRITEABLE | WL_SOCKET_READABLE))
				check_refused(agent);
		}
		else if (sent == 0 || errno != EINTR)
		{
			check_refused(agent);
			lost();
		}
	}
}

static void
receive_all(Agent *agent, char *data, size_t length)
{
	while (length > 0)
	{
		ssize_t		got = recv(agent->socket, data, length, 0);

		if (got > 0)
		{
			data += got;
			length -= got;
		}
		else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			wait_until(agent, WL_SOCKET_READABLE);
		else if (got == 0 || errno != EINTR)
			lost();
	}
}

/* wait for the socket, and return whether there is something to read */
static bool
wait_until(Agent *agent, int event)
{
	int			rc = WaitLatchOrSocket(MyLatch,
									   event | WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
									   agent->socket, AGENT_PATIENCE, PG_WAIT_EXTENSION);

	if (rc & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	if (rc & WL_TIMEOUT)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("the agent of the host does not answer")));
	return (rc & WL_SOCKET_READABLE) != 0;
}

/* the agent says nothing before all data came, unless it refuses them */
static void
check_refused(Agent *agent)
{
	char		first;

	if (recv(agent->socket, &first, 1, MSG_PEEK) != 1)
		return;
	(void) howdah_agent_receive(agent);
	lost();
}

/* an error of the agent's: five characters of SQLSTATE, and what to say */
static void
refuse_as_told(Agent *agent)
{
	const char *state = agent->in.data;
	char	   *text;

	if (agent->in.len < 6)
		lost();
	for (int i = 0; i < 5; i++)
		if (!((state[i] >= '0' && state[i] <= '9') || (state[i] >= 'A' && state[i] <= 'Z')))
			lost();
	text = pg_any_to_server(state + 5, agent->in.len - 5, PG_UTF8);
	ereport(ERROR,
			(errcode(MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4])),
			 errmsg("%s", text)));
}

static void
lost(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("the agent of the host ended the transfer"),
			 errhint("Try again.")));
}
