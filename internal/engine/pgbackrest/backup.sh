# backup CONFIG OPTION…: makes a backup.
#
# pgBackRest takes only links in pg_tblspc, and ours are directories. So pg_tblspc is left out, and
# backed up as what a link points to. The link goes round by another name of the data directory,
# since pgBackRest takes no link to what lies in that directory.
set -u
umask 077
PATH=/usr/bin:/bin
conf=$1
shift
[ "$(readlink "$dir/data")" = "$data" ] || ln -sfn "$data" "$dir/data" || exit 1
link="$data/$tablespaces"
[ ! -L "$link" ] || rm -f "$link"
ln -s "$dir/data/pg_tblspc" "$link" || exit 1
trap 'rm -f "$link"' EXIT
trap 'exit 143' TERM INT HUP
"$program" --config="$conf" --stanza="$database" --exclude=pg_tblspc/ --log-level-console=detail "$@" backup
