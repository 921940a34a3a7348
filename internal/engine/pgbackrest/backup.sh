# backup CONFIG OPTION…: makes a backup.
#
# pgBackRest takes only links in pg_tblspc, and ours are directories. So pg_tblspc is left out, and
# backed up as what a link points to: see link.
set -u
umask 077
PATH=/usr/bin:/bin
conf=$1
shift
. "$dir/link" || exit 1
trap 'exit 143' TERM INT HUP
"$program" --config="$conf" --stanza="$database" --exclude=pg_tblspc/ --log-level-console=detail "$@" backup
