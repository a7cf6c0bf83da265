# The author. It means well and touches README.md too; the hook refuses that commit, and it puts the file back.
set -eu
subject=$(git log -1 --format=%s)
echo "- $subject" >> CHANGES.md
echo "Newest: $subject" >> README.md
git add CHANGES.md
if ! git commit --quiet --all --message "Note: $subject"; then
  striatum scope-check || git checkout --quiet HEAD -- README.md
  git commit --quiet --all --message "Note: $subject"
fi
striatum work complete --summary "noted: $subject"
