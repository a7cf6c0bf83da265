# The author. Writes map.md: a row for each file of the repository, and the sums.
#
# It takes files whose names end like source or documentation, and counts lines with `wc -l`. Both are what a
# quick author does, and both miss something in this repository. Where a review names a file, it looks again.
set -eu
LC_ALL=C
export LC_ALL GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
repository=$(dirname "$STRIATUM_DIR")

# The files that reviews of the attempt before named under a title. A finding stands in the prompt as
# "- TITLE: DETAIL"; these reviewers begin the detail with the file.
findings() {
    sed -n "s/^- $1: \([^:]*\).*/\1/p" "$STRIATUM_PROMPT"
}

files() {
    git -C "$repository" ls-files -- . ':!.striatum' | grep -E '\.(sh|md|txt)$'
    findings 'no row for'
}

# Whatever a review had to name is counted with more care.
lines_of() {
    if findings '[a-z ]*' | grep -q -F -x -e "$1"; then
        awk 'END { print NR }' "$repository/$1"
    else
        wc -l < "$repository/$1" | tr -d ' '
    fi
}

# The first heading or comment.
purpose_of() {
    sed -n 's/^# //p' "$repository/$1" | sed 1q
}

rows() {
    files | sort -u | while read -r file; do
        printf '| %s | %s | %s |\n' "$file" "$(lines_of "$file")" "$(purpose_of "$file")"
    done
}

rows > rows.txt
{
    printf '# Map of %s\n\n' "$(sed -n 's/^# \([^:]*\).*/\1/p' "$repository/README.md" | sed 1q)"
    printf '| file | lines | what it is |\n| --- | --- | --- |\n'
    cat rows.txt
    awk -F' [|] ' '{ lines += $2 } END { printf "\n%d files, %d lines.\n", NR, lines }' rows.txt
} > map.md

cat map.md
striatum work complete --summary "$(tail -n 1 map.md)"
