# SPDX-License-Identifier: MIT
# bash completion for claude-sandbox(1)

# The first column of a table; an empty one is a sentence on a single line.
_claude_sandbox_column()
{
	claude-sandbox "$@" 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_claude_sandbox_words()
{
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}")
}

_claude_sandbox_files()
{
	mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
	compopt -o filenames 2>/dev/null
}

_claude_sandbox()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb='' action='' away='' ids='' i
	local verbs='shell sessions show exposure routes ports denied why stop allow-ip policy install gh-auth glab-auth log version help'
	local common='--json --host --help'

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-H | --host) away=yes && i=$((i + 1)) ;;
		-H*) away=yes ;;
		--session | --for) i=$((i + 1)) ;;
		-*) ;;
		*)
			if [[ -z $verb ]]; then
				verb=${COMP_WORDS[i]}
			elif [[ -z $action ]]; then
				action=${COMP_WORDS[i]}
			fi
			;;
		esac
	done

	if [[ $verb == shell ]]; then
		_claude_sandbox_files
		return
	fi
	case $before in
	-H | --host)
		[[ $(type -t _known_hosts_real) != function ]] || _known_hosts_real -a -- "$word"
		return
		;;
	--for)
		_claude_sandbox_words '15m 1h 8h 1d'
		return
		;;
	esac
	# Another machine is not asked while somebody types: it may take a password.
	if [[ $word != -* && -z $away ]]; then
		case $before:$verb in
		--session:* | *:show | *:exposure | *:routes | *:ports | *:denied | *:stop | *:log) ids=$(_claude_sandbox_column sessions) ;;
		esac
	fi
	if [[ $before == --session ]]; then
		_claude_sandbox_words "$ids"
		return
	fi

	case $verb:$word in
	:-*) _claude_sandbox_words "$common --version" ;;
	: | :*) _claude_sandbox_words "$verbs" ;;
	help:*) _claude_sandbox_words "$verbs" ;;
	sessions:-*) _claude_sandbox_words "--all $common" ;;
	denied:-* | log:-*) _claude_sandbox_words "-f --follow $common" ;;
	why:-*) _claude_sandbox_words "--session $common" ;;
	allow-ip:-*) _claude_sandbox_words "--session --for $common" ;;
	install:-*) _claude_sandbox_words '--list --remove --json --help' ;;
	gh-auth:-* | glab-auth:-*) _claude_sandbox_words '--json --help' ;;
	*:-*) _claude_sandbox_words "$common" ;;
	why:*) _claude_sandbox_files ;;
	install:*) _claude_sandbox_words 'claude codex pi' ;;
	glab-auth:*) _claude_sandbox_words 'gitlab.com' ;;
	allow-ip:*)
		if [[ -z $action ]]; then
			_claude_sandbox_words 'list add remove edit'
		elif [[ $action == remove && -z $away ]]; then
			_claude_sandbox_words "$(_claude_sandbox_column allow-ip list)"
		fi
		;;
	*) [[ -z $ids ]] || _claude_sandbox_words "$ids" ;;
	esac
}

complete -F _claude_sandbox claude-sandbox
