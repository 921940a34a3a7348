/*-------------------------------------------------------------------------
 *
 * agent.h
 *		A conversation with the agent of the host.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOWDAH_AGENT_H
#define HOWDAH_AGENT_H

#include "lib/stringinfo.h"
#include "port.h"

/* frames: what is asked, data, the end of all data, an error */
#define AGENT_EXPORT 'E'
#define AGENT_IMPORT 'I'
#define AGENT_DATA 'd'
#define AGENT_END 'f'
#define AGENT_ERROR 'e'

typedef struct Agent
{
	pgsocket	socket;
	StringInfoData out;			/* data that is not sent yet */
	StringInfoData in;			/* content of the newest frame */
} Agent;

extern void howdah_agent_init(void);
extern Agent *howdah_agent_open(void);
extern void howdah_agent_close(Agent *agent);
extern void howdah_agent_ask(Agent *agent, char request, int count,
							 const char *const *words);
extern void howdah_agent_send(Agent *agent, const char *data, size_t length);
extern void howdah_agent_end(Agent *agent);
extern char howdah_agent_receive(Agent *agent);

#endif							/* HOWDAH_AGENT_H */
