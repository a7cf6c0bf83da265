# bin/list.sh prints every note, oldest first, each on a line of its own.
set -eu
FIELDNOTES=$(mktemp -d)
export FIELDNOTES
trap 'rm -rf "$FIELDNOTES"' EXIT

# Some editors leave no newline after the last line.
printf '08:15 saw the first swallow\n21:40 rain' > "$FIELDNOTES/2031-04-01.txt"
printf '07:00 fog\n' > "$FIELDNOTES/2031-04-02.txt"

wanted='2031-04-01 08:15 saw the first swallow
2031-04-01 21:40 rain
2031-04-02 07:00 fog'
said=$(sh bin/list.sh)
test "$said" = "$wanted" || {
    printf 'wanted:\n%s\ngot:\n%s\n' "$wanted" "$said"
    exit 1
}
