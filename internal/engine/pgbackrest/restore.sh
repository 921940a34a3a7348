# restore CONFIG OPTION…: restores a backup into the data directory.
set -u
umask 077
PATH=/usr/bin:/bin
conf=$1
shift
"$program" --config="$conf" --stanza="$database" --type=none --log-level-console=detail "$@" restore || exit
# What the script backup says of tablespaces, the other way round.
from="$data/$tablespaces"
[ -d "$from" ] || exit 0
for tablespace in "$from"/*; do
	[ ! -d "$tablespace" ] || mv "$tablespace" "$data/pg_tblspc/" || exit
done
rmdir "$from" && sync -f "$data"
