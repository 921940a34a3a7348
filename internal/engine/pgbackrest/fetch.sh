# fetch MODE CONFIG NAME FILE: fetches a file of WAL for recovery.
#
# It ends with 1 if there is no such file. That tells PostgreSQL that there is no more WAL. Whatever
# else goes wrong ends with 126, by which recovery ends with an error. If all is to be replayed
# (MODE is newest) a file that is missing before others is such an error, too: with a target
# PostgreSQL itself finds that it is not reached. A file that cannot be read three times, and not for
# want of the repository, is damaged.
#
# If MODE is check, the content is compared with the checksum that is in the file's name in the
# repository. That costs as much as to fetch it, so it is not done for each file.
set -u
umask 077
PATH=/usr/bin:/bin
LC_ALL=C
mode=$1 conf=$2 name=$3 file=$4

tell() {
	printf '%s\n' "$1" >&2
	printf '%s\n' "$1" >"$failing.new" && mv -f "$failing.new" "$failing"
}

fail() {
	tell "$1"
	exit 126
}

# spoilt: the file is damaged. PostgreSQL fetches ahead: a target before the file must be reached.
spoilt() {
	case $mode:$name in
	target:????????????????????????)
		tell "$1"
		exit 1
		;;
	esac
	fail "$1"
}

get() { # prints what the program says
	"$program" --config="$conf" --stanza="$database" --pg1-path="$data" --log-level-console=info archive-get "$name" "$file" 2>&1
}

list() { # PLACE FILTER
	"$program" --config="$conf" --stanza="$database" repo-ls "archive/$database/$1" --filter="$2"
}

# id: the directory of the archive that the file was found in.
id() { printf '%s\n' "$said" | sed -n 's/.* in the repo1: \([0-9]*-[0-9]*\) archive.*/\1/p'; }

# compare: whether the content of the file is that by which the repository names it. It is fetched
# once more before it is believed that it is not.
compare() {
	archive=$(id)
	names=$(list "$archive/${name%????????}" "^$name-") || fail "The repository cannot be asked for $name."
	for again in yes ''; do
		sum=$(sha1sum <"$file") || fail "$file cannot be read."
		case $names in
		"$name-${sum%% *}"*) return 0 ;;
		esac
		[ -z "$again" ] || get >/dev/null || fail "$name cannot be fetched again."
	done
	fail "WAL file $name is damaged in the repository: its content is not what was archived."
}

# garbled: prints why the file cannot be read, if that is its content.
garbled() {
	printf '%s\n' "$said" | sed -En "s/^.* [^ ]*$name(-[0-9a-f]+)?(\.[a-z0-9]+)? \[(Format|Crypto|Checksum|Assert)Error\] //p" |
		grep -Ev 'HTTP|multipart|response|TLS|XML' | tail -n 1
}

tries=3 damaged=0
while :; do
	said=$(get)
	code=$?
	case $code in
	0)
		[ ! -e "$failing" ] || rm -f "$failing"
		[ "$mode" != newest ] || id >"$dir/archive-id"
		[ "$mode" != check ] || compare
		exit 0
		;;
	1) break ;;
	esac
	tries=$((tries - 1))
	why=$(garbled)
	[ -z "$why" ] || damaged=$((damaged + 1))
	[ "$damaged" -lt 3 ] || spoilt "WAL file $name is damaged in the repository: $why."
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
