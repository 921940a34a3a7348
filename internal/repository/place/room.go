package place

import (
	"fmt"

	"golang.org/x/sys/unix"

	"howdah/internal/model/member"
)

// reserve is the part of a directory's disk, one in so many, below which no automated backup begins.
// What is left is for WAL, without which backups are of no use.
const reserve = 20

// Low says that little is free where a directory is, or "". Nobody knows that of an S3 server. It may
// take as long as the file system takes to answer.
func Low(r member.Repository) string {
	var stat unix.Statfs_t
	if r.Kind != "directory" || unix.Statfs(r.Path, &stat) != nil {
		return ""
	}
	return low(int64(stat.Blocks)*stat.Bsize, int64(stat.Bavail)*stat.Bsize)
}

// low takes bytes.
func low(size, free int64) string {
	if size <= 0 || free >= size/reserve {
		return ""
	}
	return fmt.Sprintf("%d of %d MiB are free on its disk, less than a twentieth", free>>20, size>>20)
}
