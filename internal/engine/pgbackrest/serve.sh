# serve CONFIG: lets the backup of a standby use this primary, until it is ended.
set -u
umask 077
PATH=/usr/bin:/bin
conf=$1
. "$dir/link" || exit 1
trap 'kill ${pid:-} 2>/dev/null; exit 143' TERM INT HUP
# The server does not hold the lock.
"$program" --config="$conf" server 9>&- &
pid=$!
wait "$pid"
