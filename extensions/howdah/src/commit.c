/*-------------------------------------------------------------------------
 *
 * commit.c
 *		A cancel does not end the wait of a commit for its standbys.
 *
 * PostgreSQL writes the commit to its own WAL, then waits for synchronous
 * standbys, then shows the transaction to others and answers the client. A
 * query cancel in that wait makes it stop waiting, and answer with success:
 * a client is told of a commit that no standby has. (A warning comes with it,
 * which programs do not read.) Nothing can be undone at that point, so there
 * is nothing for the cancel to do; here it has to wait as well.
 *
 * SIGINT, which every cancel and timeout of a statement comes as, is blocked
 * from the last moment at which the transaction can still fail until it is
 * committed. Deferred triggers, constraints, cursors and the commits of
 * foreign servers come before that moment and can be cancelled as ever. Two
 * waits come after it, and hold cancels too: NOTIFY's for the lock that has
 * commits with notifications go one after the other (PreCommit_Notify), so
 * behind one that waits for a standby; and that of ON COMMIT DROP for locks of
 * its own temporary tables, which others hardly take.
 *
 * A cancel in the wait is dropped. So in a string of several statements that
 * came as one simple query, a cancel in the wait of a COMMIT in it is lost, and
 * the statements behind it go on.
 *
 * SIGTERM is left alone: whoever ends a session or the server in the wait gets
 * no answer from it, which promises nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include <signal.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"

/* SIGINT is blocked by hold_cancels */
static bool holding = false;

/* a cancel that had come before, and that nobody was in a position to act on */
static bool held_back = false;

/* utility statements under way, one inside the other */
static int	depth = 0;

static void at_transaction_event(XactEvent event, void *arg);
static bool finishes_prepared(UtilityCall *call);
static void utility_ends(void);
static void hold_cancels(void);
static void release_cancels(void);
static void interrupt_set(sigset_t *set);

void
howdah_commit_init(void)
{
	RegisterXactCallback(at_transaction_event, NULL);
}

/*
 * Run a utility statement. COMMIT PREPARED and ROLLBACK PREPARED wait for
 * standbys without any event of a transaction: all of their work is short but
 * for the wait, so cancels are held during all of it.
 */
void
howdah_commit_utility(UtilityCall *call, void (*run) (UtilityCall *call))
{
	depth++;
	PG_TRY();
	{
		if (finishes_prepared(call))
			hold_cancels();
		run(call);
	}
	PG_CATCH();
	{
		utility_ends();
		PG_RE_THROW();
	}
	PG_END_TRY();
	utility_ends();
}

static void
utility_ends(void)
{
	depth--;
	if (depth == 0)
		release_cancels();
}

static bool
finishes_prepared(UtilityCall *call)
{
	TransactionStmt *statement = (TransactionStmt *) call->pstmt->utilityStmt;

	return IsA(statement, TransactionStmt) &&
		(statement->kind == TRANS_STMT_COMMIT_PREPARED ||
		 statement->kind == TRANS_STMT_ROLLBACK_PREPARED);
}

/*
 * XactCallback. PostgreSQL calls those of modules that were loaded later
 * first, so those of foreign data wrappers, which wait for other servers,
 * still run with cancels.
 *
 * Only what comes before the commit may raise errors: one at
 * XACT_EVENT_COMMIT would bring the whole server down.
 */
static void
at_transaction_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			/*
			 * Who has written nothing does not wait. NOTIFY gets its
			 * transaction id only later, and does wait; but what it says is
			 * kept nowhere, so that nothing of it can be lost.
			 */
			if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
				hold_cancels();
			break;
		case XACT_EVENT_PRE_PREPARE:
			hold_cancels();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			release_cancels();
			break;
		default:
			break;
	}
}

/*
 * Cancels wait from here on; one that has come before is acted on now, while
 * it is still harmless. May raise an error, with cancels held.
 *
 * Whoever does not want to wait is left alone: sessions that have chosen so,
 * and autovacuum, which sessions cancel that wait for its locks.
 */
static void
hold_cancels(void)
{
	sigset_t	interrupt;
	sigset_t	before;

	if (holding || !howdah_commit_ignores_cancel || !SyncRepRequested())
		return;
	interrupt_set(&interrupt);
	if (sigprocmask(SIG_BLOCK, &interrupt, &before) != 0)
		elog(ERROR, "could not block cancels for a commit: %m");
	holding = sigismember(&before, SIGINT) == 0;
	CHECK_FOR_INTERRUPTS();
	/* Where interrupts are held by our caller, nothing was done about it. */
	held_back = QueryCancelPending;
	QueryCancelPending = false;
}

/*
 * Cancels have their effect again. One that came meanwhile was for a statement
 * that is done, and must not hit the next one; but inside of CALL, VACUUM and
 * others that commit on their way, it is for what is still to come.
 *
 * Raises no error, and may be called at any time.
 */
static void
release_cancels(void)
{
	sigset_t	interrupt;
	sigset_t	pending;
	int			ignored;
	bool		goes_on = depth > 0;

	if (held_back && goes_on)
		InterruptPending = QueryCancelPending = true;
	held_back = false;
	if (!holding)
		return;
	holding = false;
	interrupt_set(&interrupt);
	if (!goes_on && sigpending(&pending) == 0 && sigismember(&pending, SIGINT) == 1)
		sigwait(&interrupt, &ignored);
	sigprocmask(SIG_UNBLOCK, &interrupt, NULL);
}

static void
interrupt_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
}
