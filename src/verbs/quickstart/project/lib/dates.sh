# Days and times as the notes write them.
folder() {
    printf %s "${FIELDNOTES:-$HOME/fieldnotes}"
}

today() {
    date +%Y-%m-%d
}

now() {
    date +%H:%M
}