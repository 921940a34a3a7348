package database

import "howdah/internal/host/database/probe"

// hardLimit is what all of a member's directory may have where its database was given so many
// bytes; 0 where it has no limit. PostgreSQL must not meet it by ordinary use, as it stops when it
// cannot write WAL. So it lies as far above what counts as over by far as that lies above what was
// given: from there on only DROP and TRUNCATE run, and what is on its way until the next look is
// less than 2 GiB. What log files may have comes on top, and an eighth pays for what the file
// system itself takes. Files are written in place there: else a database could have twice its size.
func hardLimit(given int64) int64 {
	if given <= 0 {
		return 0
	}
	limit := given + 2*(given/10+probe.MostOver) + min(max(given/logShare, leastLogBytes), mostLogBytes)
	return limit + limit/8
}

// Room is that limit. Data that were put aside are another copy, for as long as they are there, and
// so are data that were thrown away and not removed yet.
func (r *runner) Room() int64 {
	limit := hardLimit(r.Want.Limits.StorageBytes)
	if r.aside.Kept() || r.host.Throws(r.ID) {
		limit *= 2
	}
	return limit
}
