# archive FILE: archives a file of WAL; FILE is relative to the data directory.
#
# A primary pushes the file. A standby only asks whether each repository has it: it keeps WAL until
# then, and pushes it if it is promoted. Nothing is acknowledged that is not in each repository, but
# - what nobody needs: what lies beyond the place where its timeline was left, and half files;
# - what is given up: then too much waits, and its name goes to the file `broken`;
# - what another server has archived by the same name: that goes to the directory `foreign`.
set -u
umask 077
PATH=/usr/bin:/bin
LC_ALL=C
file=$1

stopping() {
	case $(sed -n 8p postmaster.pid 2>/dev/null) in
	stopping*) return 0 ;;
	esac
	return 1
}

name=${file##*/}
newline='
'
IFS=$newline
said=
# The end of a server waits for its archiver, and a switchover for that. So then a file has little
# time, and none if the repository has failed before. Who stops a server for good gives it more: see
# patient.
limit=300

# patient: whether the end of the server may wait still.
patient() {
	until=
	[ ! -f "$patience" ] || read -r until <"$patience" || :
	case $until in
	'' | *[!0-9]* | ????????????*) return 1 ;;
	esac
	now=$(date +%s)
	[ "$until" -gt "$now" ] && [ "$until" -le $((now + 60)) ]
}

# waiting counts the files of WAL that wait to be archived.
waiting() {
	set -- pg_wal/archive_status/????????????????????????.ready
	echo $#
}

# over: whether more files wait than may, so that this one is given up.
over() {
	case $name in
	????????????????????????) [ "$cap" -gt 0 ] && [ "$(waiting)" -gt "$cap" ] ;;
	*) return 1 ;;
	esac
}

if stopping; then
	[ ! -e "$failing" ] || exit 129
	if patient; then
		limit=60 # watch looks for how long
	else
		[ "$(waiting)" -le 8 ] || exit 129
		limit=2
	fi
fi

# watch PID: ends a program if the server has been ending for two seconds, or for as long as it may, or
# if too much waits by now.
watch() {
	trap 'kill ${nap:-} 2>/dev/null; exit 0' TERM
	ending=0
	while kill -0 "$1" 2>/dev/null; do
		sleep 1 &
		nap=$!
		wait "$nap"
		! stopping || ending=$((ending + 1))
		if [ "$ending" -ge 2 ] && ! patient || over; then
			kill "$1" 2>/dev/null
			return
		fi
	done
}

watched() { # COMMAND…
	"$@" &
	pid=$!
	watch "$pid" >/dev/null 2>&1 &
	watch=$!
	wait "$pid"
	code=$?
	kill "$watch" 2>/dev/null
	return "$code"
}

run() { # CONFIG COMMAND…: what the program prints is kept if it fails
	conf=$1
	shift
	out=$(watched timeout "$limit" "$program" --config="$conf" --stanza="$database" "$@" 2>&1) && return
	said="$said$out$newline"
	return 1
}

give_up() {
	grep -qxF "$name" "$broken" 2>/dev/null || printf '%s\n' "$name" >>"$broken" || exit 1
	sync "$broken" "$dir" || exit 1
	echo "howdah: WAL file $name is given up: $(waiting) files wait, and $cap may. A backup heals it." >&2
	exit 0
}

# end CODE: says why a file could not be archived, and lets others read it.
end() {
	if [ "$1" = 0 ]; then
		[ ! -e "$failing" ] || rm -f "$failing"
		exit 0
	fi
	printf '%s' "$said" >&2
	printf '%s' "$said" >"$failing.new" && mv -f "$failing.new" "$failing"
	# PostgreSQL tries again, after a pause, what ends with 1. With 129 the archiver ends.
	! stopping || exit 129
	! over || give_up
	exit 1
}

# abandoned: whether the file lies where its timeline was left for the one that the server is on, or
# beyond. What is needed of it is in the first file of the next timeline. Nobody archives it: a
# standby that follows a promotion has such a file, and would wait for it for ever.
abandoned() {
	case $name in
	????????????????????????) ;;
	*) return 1 ;;
	esac
	timeline=${name%????????????????}
	current=
	for segment in pg_wal/[0-9A-F]???????????????????????; do
		current=${segment#pg_wal/}
	done
	current=${current%????????????????}
	[ "$current" != "$timeline" ] && [ -e "pg_wal/$current.history" ] || return 1
	number=${name#????????????????}
	log=${name#????????}
	log=${log%????????}
	while IFS=' 	' read -r line place _; do
		case $line:$place in
		"$((0x$timeline)):"?*/?*)
			[ $((0x$log * 256 + 0x$number)) -ge $((0x${place%/*} * 256 + (0x${place#*/} >> 24))) ]
			return
			;;
		esac
	done <"pg_wal/$current.history"
	return 1
}

# push CONFIG: pushes the file. If the repository has another one of this name, that will never
# change. So it is written down that the one in the repository is not of this server, and the next
# try passes.
push() {
	if run "$1" archive-push "$file"; then
		[ ! -e "$foreign/$name" ] || rm -f "$foreign/$name"
		return 0
	fi
	case $out in
	*'ERROR: [045]'*) ;;
	*) return 1 ;;
	esac
	[ ! -e "$foreign/$name" ] || return 0
	mkdir -p "$foreign" && : >"$foreign/$name" && sync "$foreign/$name" "$foreign" "$dir"
	return 1
}

# has CONFIG: whether the repository has the file.
has() {
	run "$1" repo-ls "archive/$database" --filter="^$major-[0-9]+\$" || return
	id=$(printf '%s\n' "$out" | sort -t- -k2n | tail -n 1)
	if [ -z "$id" ]; then
		said="${said}The repository is not prepared yet.$newline"
		return 1
	fi
	case $name in
	*.history) place="archive/$database/$id" ;;
	*) place="archive/$database/$id/${name%????????}" ;;
	esac
	run "$1" repo-ls "$place" --filter="^$name" || return
	case $out in
	"$name" | "$name"-*) return 0 ;;
	esac
	said="${said}The primary has not archived $name yet.$newline"
	return 1
}

# ahead: one repository that fails keeps no others from what follows.
ahead() {
	left=64
	for ready in pg_wal/archive_status/*.ready; do
		next=${ready##*/}
		next=${next%.ready}
		case $next in "$name" | *.partial) continue ;; esac
		for conf in $works; do
			list="$conf.ahead"
			grep -qxF "$next" "$list" 2>/dev/null && continue
			[ "$left" -gt 0 ] || return
			left=$((left - 1))
			run "$conf" archive-push "pg_wal/$next" || return
			echo "$next" >>"$list"
		done
	done
}

# Nothing is restored from these. Two servers may have different ones of the same name.
case $name in *.partial) end 0 ;; esac
# A history that names no timeline bars a number (package gate): the repository gets none.
case $name in *.history) grep -q '^[0-9]' "$file" || [ ! -e "$file" ] || end 0 ;; esac
! abandoned || end 0

! over || give_up

if [ -e standby.signal ]; then
	# Nothing is restored from these, and nobody else may have them.
	case $name in *.backup) end 0 ;; esac
	for conf in $configs; do
		# The primary may be at it: that is no failure yet.
		left=5
		until
			said=
			has "$conf"
		do
			! abandoned || end 0
			left=$((left - 1))
			[ "$left" -gt 0 ] && [ -e standby.signal ] && ! stopping || end 1
			sleep 1
		done
	done
	end 0
fi

works='' fails=''
for conf in $configs; do
	if push "$conf"; then
		works="$works$conf$newline"
	else
		fails=yes
	fi
done
if [ -z "$fails" ]; then
	for conf in $configs; do
		[ ! -e "$conf.ahead" ] || rm -f "$conf.ahead"
	done
	end 0
fi
[ -z "$works" ] || ahead
end 1
