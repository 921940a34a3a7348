# fetch MODE CONFIG NAME FILE: fetches a file of WAL for recovery.
#
# It ends with 1 if there is no such file. That tells PostgreSQL that there is no more WAL. Whatever
# else goes wrong ends with 126, by which recovery ends with an error. If all is to be replayed
# (MODE is newest) a file that is missing before others is such an error, too: with a target
# PostgreSQL itself finds that it is not reached.
set -u
umask 077
PATH=/usr/bin:/bin
LC_ALL=C
mode=$1 conf=$2 name=$3 file=$4

fail() {
	printf '%s\n' "$1" >&2
	printf '%s\n' "$1" >"$failing.new" && mv -f "$failing.new" "$failing"
	exit 126
}

get() { # prints what the program says
	"$program" --config="$conf" --stanza="$database" --pg1-path="$data" --log-level-console=info archive-get "$name" "$file" 2>&1
}

list() { # PLACE FILTER
	"$program" --config="$conf" --stanza="$database" repo-ls "archive/$database/$1" --filter="$2"
}

tries=3
while :; do
	said=$(get)
	code=$?
	case $code in
	0)
		[ ! -e "$failing" ] || rm -f "$failing"
		if [ "$mode" = newest ]; then
			printf '%s\n' "$said" | sed -n 's/.* in the repo1: \([0-9]*-[0-9]*\) archive.*/\1/p' >"$dir/archive-id"
		fi
		exit 0
		;;
	1) break ;;
	esac
	tries=$((tries - 1))
	[ "$tries" -gt 0 ] || fail "$(printf '%s\n' "$said" | grep -v INFO)"
	sleep 1
done

case $name in
????????????????????????) ;;
*) exit 1 ;;
esac
[ "$mode" = newest ] || exit 1
id=$(cat "$dir/archive-id" 2>/dev/null) || exit 1
[ -n "$id" ] || exit 1
timeline=${name%????????????????}
log=${name%????????}
logs=$(list "$id" "^$timeline[0-9A-F]{8}\$") || fail "The repository cannot be asked what comes after $name."
last=$(printf '%s\n' "$logs" | sort | tail -n 1)
[ -n "$last" ] || exit 1
if [ "$(printf '%s\n' "$last" "$log" | sort | tail -n 1)" = "$last" ]; then
	newest=$(list "$id/$last" "^${last}[0-9A-F]{8}-") || fail "The repository cannot be asked what comes after $name."
	newest=$(printf '%s\n' "$newest" | sort | tail -n 1)
	newest=${newest%%-*}
	if [ -n "$newest" ] && [ "$newest" != "$name" ] && [ "$(printf '%s\n' "$newest" "$name" | sort | tail -n 1)" = "$newest" ]; then
		fail "WAL file $name is missing in the repository, and $newest is there: nothing after the gap can be restored."
	fi
fi
exit 1
