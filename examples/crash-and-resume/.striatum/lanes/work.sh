# Does something that can't be undone, and answers with a file.
set -eu
project=$(dirname "$STRIATUM_DIR")

printf '%s\n' "$STRIATUM_JOB" >> "$project/effects.log"

# In the middle of the second step: tell crash.sh whose it is, and wait until it has done its worst. Both are
# named pipes, so that nobody has to guess how long anything takes.
if [ "$STRIATUM_JOB" = second ]; then
    printf '%s\n' "$STRIATUM_SESSION" > "$project/half"
    read -r _ < "$project/go"
fi

printf '{"schema": "striatum.result/1", "status": "DONE", "summary": "%s is done"}\n' "$STRIATUM_JOB" > "$STRIATUM_RESULT"
