#!/bin/sh
# A step of a day on a small Debian machine: `day.sh STEP`. It passes if all its commands do and
# their results are right; what they print is in day.log, and shown after a failure. Then follow
# the step's figures: its time, and what it cost by the counters of /proc/vmstat.
#
# Steps leave in /suite/work what such a day leaves, so each finds the memory of those before it.
#
# shellcheck disable=SC2317,SC2086 # a step is called by its name; no path here has a space
set -eu

WORK=/suite/work
OWNED=/sys/kernel/mm/cohort/owned_free
MANY=80 # C functions of a file that is compiled

# The sum of these counters of /proc/vmstat.
counter() {
	awk -v names=" $* " 'index(names, " " $1 " ") { sum += $2 } END { printf "%.0f", sum }' /proc/vmstat
}

# The share of free memory that lies in blocks below the order $1, of lines with blocks by order.
unusable() {
	awk -v order="$1" '
		{ for (i = 1; i <= NF; i++) { pages = $i * 2 ^ (i - 1); all += pages; if (i > order) large += pages } }
		END { printf "%.4f", all ? 1 - large / all : 1 }'
}

buddies() {
	sed 's/.*zone *[^ ]* *//' /proc/buddyinfo
}

all_free() {
	buddies
	if [ -e "$OWNED" ]; then cat "$OWNED"; fi
}

# Each counter by the name of its figure, a line each.
counters() {
	echo "refaults $(counter workingset_refault_file workingset_refault_anon)"
	echo "evicted $(counter pgsteal_kswapd pgsteal_direct pgsteal_khugepaged)"
	echo "direct $(counter pgsteal_direct)"
	echo "moved $(counter pgmigrate_success)"
	echo "kills $(counter oom_kill)"
}

# Packages that the root does not have: unpacked, configured, called.
step_install() {
	dpkg -i archives/*.deb
	vim --version | grep -q 'Vi IMproved'
	bison --version | grep -q 'GNU Bison'
}

# A program of eight generated files, two compilers at a time; what it computes is known.
step_compile() {
	mkdir -p $WORK/c
	cd $WORK/c
	for file in 0 1 2 3 4 5 6 7; do
		awk -v file=$file -v many=$MANY 'BEGIN {
			print "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>"
			for (i = 0; i < many; i++) {
				printf "static unsigned f%d(unsigned x)\n{\n\tunsigned a[16], i;\n", i
				printf "\tfor (i = 0; i < 16; i++)\n\t\ta[i] = x * %du + i;\n", 2 * i + 1
				printf "\tfor (i = 1; i < 16; i++)\n\t\ta[i] ^= a[i - 1] >> %d;\n", i % 13 + 1
				printf "\treturn (a[15] & ~1u) | (x & 1);\n}\n"
			}
			printf "unsigned file%d(unsigned x)\n{\n", file
			for (i = 0; i < many; i++)
				printf "\tx = f%d(x);\n", i
			print "\treturn x;\n}"
		}' >file$file.c
	done
	awk 'BEGIN {
		print "#include <stdio.h>"
		for (i = 0; i < 8; i++) printf "unsigned file%d(unsigned x);\n", i
		print "int main(void)\n{\n\tunsigned x = 1;"
		for (i = 0; i < 8; i++) printf "\tx = file%d(x);\n", i
		print "\tputs(x & 1 ? \"odd\" : \"even\");\n\treturn 0;\n}"
	}' >main.c
	for pair in '0 1' '2 3' '4 5' '6 7'; do
		first=${pair% *} second=${pair#* }
		gcc -O1 -g -c "file$first.c" &
		other=$!
		gcc -O1 -g -c "file$second.c"
		wait $other
	done
	gcc -o odd main.c file*.o
	[ "$(./odd)" = odd ]
}

# A repository of /usr/include with three commits, cloned as over a network, and searched.
step_git() {
	export GIT_AUTHOR_NAME=day GIT_AUTHOR_EMAIL=day@localhost
	export GIT_COMMITTER_NAME=day GIT_COMMITTER_EMAIL=day@localhost
	mkdir -p $WORK/origin
	cd $WORK/origin
	git init -q .
	for tree in linux asm-generic x86_64-linux-gnu; do
		cp -r "/usr/include/$tree" .
		git add .
		git commit -q -m "$tree"
	done
	git clone -q "file://$WORK/origin" $WORK/clone
	cd $WORK/clone
	[ "$(git log --oneline | wc -l)" = 3 ]
	git fsck
	[ "$(git grep -l define | wc -l)" = "$(grep -rl define --exclude-dir=.git . | wc -l)" ]
}

# A table with two indexes, filled, asked, a third of it deleted.
step_sqlite() {
	sqlite3 $WORK/day.db <<-'SQL'
		PRAGMA cache_size = -65536;
		CREATE TABLE visit (id INTEGER PRIMARY KEY, page INTEGER, host TEXT, note TEXT);
		WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 60000)
		INSERT INTO visit SELECT x, x * 7919 % 1009, 'host' || x % 257, hex(zeroblob(100)) FROM n;
		CREATE INDEX by_page ON visit (page);
		CREATE INDEX by_host ON visit (host, page);
		SELECT count(*), sum(page) FROM visit WHERE host = 'host9';
		SELECT host, count(*) AS n FROM visit GROUP BY host ORDER BY n DESC LIMIT 5;
		DELETE FROM visit WHERE id % 3 = 0;
	SQL
	[ "$(sqlite3 $WORK/day.db 'SELECT count(*) FROM visit')" = 40000 ]
	[ "$(sqlite3 $WORK/day.db 'PRAGMA integrity_check')" = ok ]
}

# Transfers between accounts as in TPC-B, each a transaction; their sums agree in the end.
step_bench() {
	awk 'BEGIN {
		print "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
		print "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER, filler TEXT);"
		print "CREATE TABLE teller (id INTEGER PRIMARY KEY, balance INTEGER);"
		print "CREATE TABLE history (account INTEGER, teller INTEGER, delta INTEGER);"
		print "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000)"
		print "INSERT INTO account SELECT x, 0, hex(zeroblob(40)) FROM n;"
		print "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10)"
		print "INSERT INTO teller SELECT x, 0 FROM n;"
		x = 1
		for (i = 0; i < 3000; i++) {
			x = (x * 16807) % 2147483647
			account = x % 100000 + 1; teller = x % 10 + 1; delta = x % 1999 - 999
			print "BEGIN;"
			print "UPDATE account SET balance = balance + " delta " WHERE id = " account ";"
			print "SELECT balance FROM account WHERE id = " account ";"
			print "UPDATE teller SET balance = balance + " delta " WHERE id = " teller ";"
			print "INSERT INTO history VALUES (" account ", " teller ", " delta ");"
			print "COMMIT;"
		}
	}' | sqlite3 $WORK/bench.db >$WORK/bench.out
	sums='SELECT (SELECT sum(balance) FROM account) = (SELECT sum(delta) FROM history)
		AND (SELECT sum(balance) FROM teller) = (SELECT sum(delta) FROM history)
		AND (SELECT count(*) FROM history) = 3000'
	[ "$(sqlite3 $WORK/bench.db "$sums")" = 1 ]
}

# An archive of /usr, unpacked beside it and compared; one of the repository, compressed.
step_tar() {
	mkdir -p $WORK/unpacked
	tar -cf $WORK/usr.tar -C / usr
	tar -xf $WORK/usr.tar -C $WORK/unpacked
	tar -df $WORK/usr.tar -C $WORK/unpacked
	tar -czf $WORK/origin.tar.gz -C $WORK origin
	tar -tzf $WORK/origin.tar.gz | grep -q 'origin/linux/'
}

step_mail() {
	mkdir -p $WORK/mail
	./mail $WORK/mail 4000
}

# Packages go again with all that they brought, and half of what the day left.
step_remove() {
	names=$(for file in archives/*.deb; do dpkg-deb -f "$file" Package; done)
	dpkg -P $names
	if command -v vim || command -v bison; then return 1; fi
	rm -r $WORK/clone $WORK/unpacked
	[ ! -e $WORK/clone ]
}

# Half of memory in huge pages, as a database asks for it: how many the kernel finds.
step_huge() {
	wanted=$(awk '$1 == "MemTotal:" { printf "%d", $2 / 4096 }' /proc/meminfo)
	echo "$wanted" >/proc/sys/vm/nr_hugepages
	cat /proc/sys/vm/nr_hugepages >$WORK/huge
	echo 0 >/proc/sys/vm/nr_hugepages
}

mkdir -p $WORK
before=$(counters)
start=$(date +%s%N)
set +e
(
	set -e
	"step_$1"
) >$WORK/day.log 2>&1
code=$?
set -e
end=$(date +%s%N)
[ $code = 0 ] || tail -n 8 $WORK/day.log
echo "# figure s $(awk -v ns=$((end - start)) 'BEGIN { printf "%.3f", ns / 1e9 }') s"
echo "# figure ui4 $(buddies | unusable 4) share"
echo "# figure ui8 $(buddies | unusable 8) share"
echo "# figure ui4_all $(all_free | unusable 4) share"
echo "# figure ui8_all $(all_free | unusable 8) share"
{
	echo "$before"
	counters
} | awk '$1 in first { print "# figure", $1, $2 - first[$1]; next } { first[$1] = $2 }'
[ "$1" != huge ] || echo "# figure huge_pages $(cat $WORK/huge)"
exit $code
