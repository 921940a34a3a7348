/*-------------------------------------------------------------------------
 *
 * report.c
 *		What the worker of a standby tells about itself: its state in shared
 *		memory, and one line in the log for each cause of trouble.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "ccm.h"

/* The same cause is logged again after so long. */
#define LOG_AGAIN_MS	600000

/* What each cause is called, and its code in the class CM, which is ours */
static const struct
{
	const char *name;
	const char *code;
}			causes[CCM_NCAUSES] = {
	[CCM_CAUSE_NONE] = {"", "CM000"},
	[CCM_CAUSE_LAG] = {"replay lag", "CM010"},
	[CCM_CAUSE_NOT_STREAMING] = {"not streaming", "CM016"},
	[CCM_CAUSE_COLD] = {"cold limit", "CM011"},
	[CCM_CAUSE_CONNECTION] = {"connection", "CM012"},
	[CCM_CAUSE_NO_EXTENSION] = {"no extension", "CM013"},
	[CCM_CAUSE_RIGHTS] = {"rights", "CM014"},
	[CCM_CAUSE_SYSTEM] = {"other system", "CM001"},
	[CCM_CAUSE_BLOCK_SIZE] = {"other block size", "CM002"},
	[CCM_CAUSE_VERSION] = {"other version", "CM003"},
	[CCM_CAUSE_OTHER_READER] = {"other reader", "CM004"},
	[CCM_CAUSE_MALFORMED] = {"malformed", "CM005"},
	[CCM_CAUSE_DISABLED] = {"disabled upstream", "CM006"},
	[CCM_CAUSE_WORKERS] = {"no worker", "CM015"},
	[CCM_CAUSE_OTHER] = {"other", "CM099"},
};

static int
code_of(const char *code)
{
	return MAKE_SQLSTATE(code[0], code[1], code[2], code[3], code[4]);
}

int
ccm_code_of_cause(CcmCause cause)
{
	return code_of(causes[cause].code);
}

const char *
ccm_cause_name(CcmCause cause)
{
	return causes[cause].name;
}

/* Which cause an error has, of ours or of the upstream's */
CcmCause
ccm_cause_of_error(int sqlerrcode)
{
	for (CcmCause cause = CCM_CAUSE_NONE; cause < CCM_NCAUSES; cause++)
		if (code_of(causes[cause].code) == sqlerrcode)
			return cause;
	switch (sqlerrcode)
	{
		case ERRCODE_UNDEFINED_FUNCTION:
		case ERRCODE_INVALID_SCHEMA_NAME:
		case ERRCODE_UNDEFINED_FILE:
			return CCM_CAUSE_NO_EXTENSION;
		case ERRCODE_INSUFFICIENT_PRIVILEGE:
			return CCM_CAUSE_RIGHTS;
		case ERRCODE_ADMIN_SHUTDOWN:
		case ERRCODE_CRASH_SHUTDOWN:
		case ERRCODE_CANNOT_CONNECT_NOW:
			return CCM_CAUSE_CONNECTION;
		default:
			return CCM_CAUSE_OTHER;
	}
}

void
ccm_set_state(CcmState state, CcmCause paused)
{
	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	ccm_shared->reader.state = state;
	ccm_shared->reader.paused = paused;
	LWLockRelease(ccm_shared->lock);
}

/*
 * Nothing is asked any more. What the last scan has found is soon not true, and
 * nobody should take it for how warm the cache is, when it is on again.
 */
void
ccm_report_off(void)
{
	CcmReader  *reader = &ccm_shared->reader;

	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	reader->state = CCM_STATE_OFF;
	reader->paused = CCM_CAUSE_NONE;
	reader->scans = 0;
	reader->last_scan_at = 0;
	reader->last_scan_us = 0;
	reader->last_was_long = false;
	memset(&reader->last, 0, sizeof(reader->last));
	LWLockRelease(ccm_shared->lock);
}

/* Give a scan up. Whoever runs it reports why. */
void
ccm_fail(CcmCause cause, const char *format,...)
{
	char		text[CCM_TEXT];
	va_list		args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ereport(ERROR,
			(errcode(ccm_code_of_cause(cause)),
			 errmsg_internal("%s", text)));
}

/*
 * Copy as much of a message as there is room for, and no part of a character of
 * UTF-8: it may be our own server's, in the language of its log.
 */
static void
copy_text(char *to, const char *text)
{
	size_t		length = strnlen(text, CCM_TEXT - 1);

	while (length > 0 && text[length] != '\0' && ((unsigned char) text[length] & 0xc0) == 0x80)
		length--;
	memcpy(to, text, length);
	to[length] = '\0';
}

/* One line in the log for each cause, and the state that stays until it works. */
void
ccm_report_failure(CcmCause cause, const char *text)
{
	static TimestampTz logged[CCM_NCAUSES];
	CcmReader  *reader = &ccm_shared->reader;
	TimestampTz now = GetCurrentTimestamp();

	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	reader->state = CCM_STATE_ERROR;
	reader->paused = CCM_CAUSE_NONE;
	reader->error = cause;
	reader->error_at = now;
	copy_text(reader->error_text, text);
	LWLockRelease(ccm_shared->lock);

	if (logged[cause] == 0 || TimestampDifferenceExceeds(logged[cause], now, LOG_AGAIN_MS))
	{
		logged[cause] = now;
		ereport(LOG, (errmsg("ccm: %s: %s", ccm_cause_name(cause), text),
					  errdetail("It is tried again; ccm.reader_status() has the state.")));
	}
}

static void
add_scan(CcmScan *to, const CcmScan *scan)
{
	to->found += scan->found;
	to->received += scan->received;
	to->hit += scan->hit;
	to->read += scan->read;
	to->skipped += scan->skipped;
	to->held_back += scan->held_back;
	to->demoted += scan->demoted;
	to->errors += scan->errors;
}

/* A scan is done, which took so many microseconds. */
void
ccm_report_scan(const CcmScan *scan, int64 us, bool is_long)
{
	CcmReader  *reader = &ccm_shared->reader;

	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	reader->scans++;
	reader->last_scan_at = GetCurrentTimestamp();
	reader->last_scan_us = us;
	reader->last_was_long = is_long;
	reader->last = *scan;
	add_scan(&reader->total, scan);
	reader->error = CCM_CAUSE_NONE;
	reader->state = CCM_STATE_WAITING;
	reader->paused = scan->held_back > 0 ? CCM_CAUSE_COLD : CCM_CAUSE_NONE;
	LWLockRelease(ccm_shared->lock);
}
