# A reviewer. Does not read the code: makes notes of every odd kind, and holds what is printed against what was put in.
set -eu
LC_ALL=C
export LC_ALL
FIELDNOTES=$STRIATUM_SCRATCH/tmp/notes
export FIELDNOTES
mkdir -p "$FIELDNOTES"

# Each file with and without a newline at its end; blanks, backslashes, percent signs, ampersands, nothing at all.
for number in 1 2 3 4 5 6 7 8 9; do
    day=2031-05-0$number
    case $number in
        1) printf '08:00 plain\n' ;;
        2) printf '08:00 no newline' ;;
        3) printf '08:00 one\n09:00 two' ;;
        4) printf '08:00 a\\nb \\t c\n' ;;
        5) printf '08:00 100%% & more\n' ;;
        6) ;;
        7) printf '08:00 a/b $HOME `x`' ;;
        8) printf '08:00 "quoted" '\''twice'\''\n' ;;
        9) printf '08:00 the last' ;;
    esac > "$FIELDNOTES/$day.txt"
done

sh bin/list.sh > "$STRIATUM_SCRATCH/tmp/printed"
notes=0
verdict=accept
set --
for file in "$FIELDNOTES"/*.txt; do
    day=$(basename "$file" .txt)
    { cat "$file"; echo; } | while IFS= read -r line; do test -z "$line" || printf '%s %s\n' "$day" "$line"; done
done > "$STRIATUM_SCRATCH/tmp/wanted"
notes=$(awk 'END { print NR }' "$STRIATUM_SCRATCH/tmp/wanted")

if ! difference=$(diff "$STRIATUM_SCRATCH/tmp/wanted" "$STRIATUM_SCRATCH/tmp/printed"); then
    verdict=needs_revision
    set -- --finding "not what was put in: $(printf '%s' "$difference" | sed -n '/^[<>]/p' | sed 1q)"
fi

echo "$notes notes were put in; $verdict"
striatum work verdict "$verdict" "$@" --summary "$notes odd notes tried"
