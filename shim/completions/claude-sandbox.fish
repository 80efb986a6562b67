# SPDX-License-Identifier: MIT
# fish completion for claude-sandbox(1)

function __claude_sandbox_ids
    # Another machine is not asked while somebody types: it may take a password.
    if string match -qr -- '^(-H|--host)' (commandline -opc)
        return
    end
    # The first column of the table; without sessions its only line is a sentence.
    claude-sandbox sessions 2>/dev/null | awk 'NR > 1 { print $1 "\t" $2 }'
end

set -l verbs shell doctor verify sessions show exposure routes ports denied why stop allow-ip policy install gh-auth glab-auth log version help

complete -c claude-sandbox -f
complete -c claude-sandbox -n "not __fish_seen_subcommand_from shell" -l json -d 'Write JSON instead of lines'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from shell" -l utc -d 'Show times in UTC'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from shell" -s h -l help -d 'Show the help'
complete -c claude-sandbox -n 'not __fish_seen_subcommand_from shell install gh-auth glab-auth' -s H -l host -x -a '(__fish_complete_user_at_hosts)' -d 'Ask another machine'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -l version -d 'Show the version of this command'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a shell -d 'Look around in a jail'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a doctor -d 'Say what keeps agents from being started'
complete -c claude-sandbox -n '__fish_seen_subcommand_from doctor' -a 'claude codex pi shell'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a verify -d 'Check that a jail holds'
complete -c claude-sandbox -n '__fish_seen_subcommand_from verify' -l probes -d 'Try the known ways out as well'
complete -c claude-sandbox -n '__fish_seen_subcommand_from verify' -a 'claude codex pi shell (__claude_sandbox_ids)'
complete -c claude-sandbox -n '__fish_seen_subcommand_from sessions' -l all -d 'Of every user'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a sessions -d 'List the sessions'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a show -d 'Show one session'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a exposure -d 'List all that an agent sees'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a routes -d 'List where packets go'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a ports -d 'List the ports that cross'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a denied -d 'List what was denied'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a why -d 'Say what decides about a path or address'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a stop -d 'End a session'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a allow-ip -d 'List or change the reachable internal addresses'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a policy -d 'Show every setting'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a install -d 'Install an agent for every user'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a gh-auth -d 'Store a token of GitHub'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a glab-auth -d 'Store a token of GitLab'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a log -d 'List what happened'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a version -d 'Show the versions'
complete -c claude-sandbox -n "not __fish_seen_subcommand_from $verbs" -a help -d 'Show the help'
complete -c claude-sandbox -n "__fish_seen_subcommand_from show exposure routes ports denied stop log" -a '(__claude_sandbox_ids)'
complete -c claude-sandbox -n "__fish_seen_subcommand_from denied" -s f -l follow -d 'Go on to show what comes'
complete -c claude-sandbox -n "__fish_seen_subcommand_from why" -F
complete -c claude-sandbox -n "__fish_seen_subcommand_from why" -l session -x -a '(__claude_sandbox_ids)' -d 'The session'
complete -c claude-sandbox -n "__fish_seen_subcommand_from install" -a 'claude codex pi'
complete -c claude-sandbox -n "__fish_seen_subcommand_from install" -l list -d 'List what is installed'
complete -c claude-sandbox -n "__fish_seen_subcommand_from install" -l remove -d 'Take one away'
complete -c claude-sandbox -n "__fish_seen_subcommand_from log" -s f -l follow -d 'Show what happens'
complete -c claude-sandbox -n '__fish_seen_subcommand_from glab-auth' -a gitlab.com
complete -c claude-sandbox -n "__fish_seen_subcommand_from allow-ip" -a 'list add remove edit'
complete -c claude-sandbox -n "__fish_seen_subcommand_from allow-ip" -l session -x -a '(__claude_sandbox_ids)' -d 'Of one session'
complete -c claude-sandbox -n "__fish_seen_subcommand_from allow-ip" -l for -x -a '15m 1h 8h 1d' -d 'For a time'
complete -c claude-sandbox -n "__fish_seen_subcommand_from help" -a "$verbs"
complete -c claude-sandbox -n "__fish_seen_subcommand_from shell" -F
