# SPDX-License-Identifier: MIT
# bash completion for claude-sandbox(1)

_claude_sandbox_ids()
{
	# The first column of the table; without sessions its only line is a sentence.
	claude-sandbox sessions 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_claude_sandbox()
{
	local word=${COMP_WORDS[COMP_CWORD]} verb='' i
	local verbs='shell sessions show exposure routes ports denied why stop allow-ip policy install log version help'

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} != -* ]]; then
			verb=${COMP_WORDS[i]}
			break
		fi
	done

	case $verb in
	'')
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W '--json --help --version' -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$word")
		fi
		;;
	shell)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		;;
	help)
		mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$word")
		;;
	sessions)
		mapfile -t COMPREPLY < <(compgen -W '--all --json --help' -- "$word")
		;;
	policy | version)
		mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$word")
		;;
	log)
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W '--follow --json --help' -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -W "$(_claude_sandbox_ids)" -- "$word")
		fi
		;;
	show | exposure | routes | ports | stop)
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -W "$(_claude_sandbox_ids)" -- "$word")
		fi
		;;
	denied)
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W '-f --follow --json --help' -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -W "$(_claude_sandbox_ids)" -- "$word")
		fi
		;;
	why)
		if [[ ${COMP_WORDS[COMP_CWORD - 1]} == --session ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_claude_sandbox_ids)" -- "$word")
		elif [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W '--session --json --help' -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
		fi
		;;
	install)
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W '--list --remove --json --help' -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -W 'claude codex pi' -- "$word")
		fi
		;;
	allow-ip)
		case ${COMP_WORDS[COMP_CWORD - 1]} in
		--session) mapfile -t COMPREPLY < <(compgen -W "$(_claude_sandbox_ids)" -- "$word") ;;
		--for) mapfile -t COMPREPLY < <(compgen -W '15m 1h 8h 1d' -- "$word") ;;
		*) mapfile -t COMPREPLY < <(compgen -W 'list add remove edit --session --for --json --help' -- "$word") ;;
		esac
		;;
	esac
}

complete -F _claude_sandbox claude-sandbox
