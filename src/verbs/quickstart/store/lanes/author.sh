# The author. Works in a checkout of its own; what it leaves there is committed for it.
#
# Its first idea is what a quick author has: let sed put the day before each line. That prints the note which was
# lost, and glues the next day to it, because sed adds no newline either. The tests say so; then it looks again.
# What a review finds, it mends.
set -eu
list=bin/list.sh

# The lines of the prompt below a title that begins so.
told() {
    awk -v title="## $1" 'index($0, "## ") == 1 { on = (index($0, title) == 1); next } on' "$STRIATUM_PROMPT"
}

# The loop over one file's lines becomes one command.
replace_loop() {
    awk -v line="$1" '
        /while read/ { print line; skip = 1 }
        !skip { print }
        /done < / { skip = 0 }
    ' "$list" > "$STRIATUM_SCRATCH/tmp/list.sh"
    cat "$STRIATUM_SCRATCH/tmp/list.sh" > "$list"
}

if grep -q 'while read' "$list"; then
    replace_loop '    sed "s/^/$day /" "$file"'
    said='let sed print the lines'
elif told 'The verification failed' | grep -q -E '[0-9]{4}-[0-9]{2}-[0-9]{2}.*[0-9]{4}-[0-9]{2}-[0-9]{2}'; then
    # Two days on one line.
    sed 's|^    sed .*|    awk -v day="$day" '\''{ print day " " $0 }'\'' "$file"|' "$list" > "$STRIATUM_SCRATCH/tmp/list.sh"
    cat "$STRIATUM_SCRATCH/tmp/list.sh" > "$list"
    said='let awk print the lines: it ends each of them'
else
    said='nothing more to do for the tests'
fi

for file in $(told 'Review' | sed -n 's/^- not told in CHANGES.md: //p'); do
    printf -- '- %s: prints the last note of a file that ends without a newline.\n' "$file" >> CHANGES.md
    said="told of $file in CHANGES.md"
done

git diff --stat
striatum work complete --summary "$said"
