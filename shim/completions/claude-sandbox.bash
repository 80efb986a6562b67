# SPDX-License-Identifier: MIT
# bash completion for claude-sandbox(1)

# The first column of a table; an empty one is a sentence on a single line.
_claude_sandbox_column()
{
	claude-sandbox "$@" 2>/dev/null | awk 'NR > 1 { print $1 }'
}

# Both offer what begins with the caller's $word.
_claude_sandbox_words()
{
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word")
}

_claude_sandbox_files()
{
	mapfile -t COMPREPLY < <(compgen -f -- "$word")
	compopt -o filenames 2>/dev/null
}

_claude_sandbox()
{
	local word=${COMP_WORDS[COMP_CWORD]} verb='' action='' option='' away='' i
	local verbs='shell doctor verify sessions show exposure routes ports denied why stop allow-ip policy install gh-auth glab-auth log version help'
	local common='--json --host --help'

	COMPREPLY=()
	# What the words so far say. Readline makes words of their own out of =, @ and : (COMP_WORDBREAKS).
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-H* | --host | --session | --for)
			option=${COMP_WORDS[i]}
			[[ $option != -H* && $option != --host ]] || away=yes
			[[ $option == -H?* ]] || i=$((i + 1))
			[[ ${COMP_WORDS[i]} != = ]] || i=$((i + 1))
			while [[ ${COMP_WORDS[i + 1]-} == [@:]* ]]; do
				i=$((i + 2))
			done
			((i >= COMP_CWORD)) || option=''
			;;
		-*) ;;
		*)
			if [[ -z $verb ]]; then
				verb=${COMP_WORDS[i]}
				[[ $verb != shell ]] || break
			elif [[ -z $action ]]; then
				action=${COMP_WORDS[i]}
			fi
			;;
		esac
	done
	[[ $word != = ]] || word=''

	case $option in
	-H* | --host)
		[[ $(type -t _known_hosts_real) != function ]] || _known_hosts_real -a -- "$word"
		return
		;;
	--for)
		_claude_sandbox_words '15m 1h 8h 1d'
		return
		;;
	--session)
		# Another machine is not asked while somebody types: it may take a password.
		[[ -n $away ]] || _claude_sandbox_words "$(_claude_sandbox_column sessions)"
		return
		;;
	esac

	case $verb:$word in
	shell:*) _claude_sandbox_files ;;
	:-*) _claude_sandbox_words "--utc $common --version" ;;
	:*) _claude_sandbox_words "$verbs" ;;
	help:*) _claude_sandbox_words "$verbs" ;;
	verify:-*) _claude_sandbox_words "--probes $common" ;;
	sessions:-*) _claude_sandbox_words "--all $common" ;;
	denied:-* | log:-*) _claude_sandbox_words "-f --follow --utc $common" ;;
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
	doctor:-*) _claude_sandbox_words "$common" ;;
	doctor:*) _claude_sandbox_words 'claude codex pi shell' ;;
	verify:*)
		_claude_sandbox_words "claude codex pi shell ${away:-$(_claude_sandbox_column sessions)}"
		;;
	show:* | exposure:* | routes:* | ports:* | denied:* | stop:* | log:*)
		[[ -n $away ]] || _claude_sandbox_words "$(_claude_sandbox_column sessions)"
		;;
	esac
}

complete -F _claude_sandbox claude-sandbox
