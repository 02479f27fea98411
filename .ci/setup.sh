#!/bin/sh
# Makes sure that what the arguments name is installed: postgres, chromium, cc, unzip. What is missing comes from apt-get where
# that works without a question, else one sentence says what to install.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }

has_postgres() {
	if has postgres && has initdb; then return 0; fi
	for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin \
		/usr/local/opt/postgresql*/bin /home/linuxbrew/.linuxbrew/opt/postgresql*/bin /usr/local/pgsql/bin; do
		if [ -x "$dir/postgres" ] && [ -x "$dir/initdb" ]; then return 0; fi
	done
	return 1
}

has_chromium() {
	has chromium || has chromium-browser || has google-chrome || has chrome ||
		[ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ]
}

has_cc() { has gcc || has clang; }

# as_root runs a command as root, or fails when that would ask for a password.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif has sudo && sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		return 1
	fi
}

# apt installs packages, and shows what apt-get said only when that goes wrong.
apt() {
	has apt-get && as_root true || return 1
	echo "setup: installing $* with apt-get" >&2
	log=$(mktemp) && status=0
	as_apt update >"$log" 2>&1 && as_apt -y install --no-install-recommends "$@" >>"$log" 2>&1 || status=$?
	[ "$status" = 0 ] || cat "$log" >&2
	rm -f "$log"
	return "$status"
}

as_apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }

# The package would also make and start a cluster of its own, which nobody here needs.
apt_postgres() {
	conf=/etc/postgresql-common/createcluster.d
	as_root mkdir -p "$conf" || return 1
	as_root sh -c "echo 'create_main_cluster = false' >$conf/rollcall.conf" || return 1
	installed=0
	apt postgresql || installed=$?
	as_root rm -f "$conf/rollcall.conf"
	return "$installed"
}

missing() {
	echo "setup: $1 is missing and can't be installed from here; please install $2" >&2
	exit 1
}

for name in "$@"; do
	case "$name" in
	postgres)
		has_postgres || apt_postgres && has_postgres ||
			missing "a PostgreSQL server" "PostgreSQL 14 or newer (Debian: apt-get install postgresql; macOS: brew install postgresql)."
		;;
	chromium)
		has_chromium || apt chromium && has_chromium ||
			missing "Chromium, which the browser tests need," "it (Debian: apt-get install chromium; macOS: brew install --cask google-chrome)."
		;;
	cc)
		has_cc || apt gcc libc6-dev && has_cc ||
			missing "a C compiler, which the race detector needs," "one (Debian: apt-get install gcc libc6-dev; macOS: xcode-select --install)."
		;;
	unzip)
		has unzip || apt unzip && has unzip ||
			missing "unzip, with which a test opens the archives," "it (Debian: apt-get install unzip; macOS has it)."
		;;
	*)
		echo "usage: $0 [postgres] [chromium] [cc] [unzip]" >&2
		exit 2
		;;
	esac
done
