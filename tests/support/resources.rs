//! A resource for tests: a folder that one script makes, checks and destroys, and a log of what it was asked.

use std::path::PathBuf;

use super::TestRepo;

/// `thing.sh FOLDER create|check|destroy NAME`: fails while `FOLDER/fails-WORD` exists; waits while `FOLDER/waits-WORD`
/// does.
const SCRIPT: &str = r#"
printf '%s\n' "$2 $3" >> "$1/log"
[ "$STRIATUM_RESOURCE" = "$3" ] || { echo "its name is not told"; exit 1; }
while [ -e "$1/waits-$2" ]; do sleep 0.02; done
[ ! -e "$1/fails-$2" ] || { echo "$2 is stuck"; exit 1; }
case $2 in
  create)
    mkdir "$1/there/$3"
    [ ! -e "$1/lives" ] || setsid sh -c 'echo $$ > "$0/pid"; trap "" TERM HUP INT; while :; do sleep 3600; done' \
      "$1/there/$3" < /dev/null > /dev/null 2>&1 &
    ;;
  check) test -d "$1/there/$3" ;;
  destroy) rm -rf "$1/there/$3" ;;
esac
"#;

impl TestRepo {
    /// The folder of what is made.
    pub fn things(&self) -> PathBuf {
        let things = self.root().join("things");
        if !things.exists() {
            std::fs::create_dir_all(things.join("there")).unwrap();
            std::fs::write(things.join("thing.sh"), SCRIPT).unwrap();
        }
        things
    }

    /// The keys of a job that has a thing of its own.
    pub fn ephemeral(&self) -> String {
        let things = self.things();
        let script = things.join("thing.sh");
        let argv = |word: &str| format!("[\"sh\", {script:?}, {things:?}, \"{word}\", \"${{resource}}\"]");
        format!(
            "shared = [\"db\"]\nephemeral = {{ resource = \"db\", create = {}, check = {}, destroy = {} }}",
            argv("create"),
            argv("check"),
            argv("destroy")
        )
    }

    /// Sets or lifts a mark that the script looks at.
    pub fn thing(&self, mark: &str, stands: bool) {
        let place = self.things().join(mark);
        if stands {
            std::fs::write(place, "").unwrap();
        } else {
            std::fs::remove_file(place).unwrap();
        }
    }

    /// What the script was asked, in order, each name as a number in the order of its making.
    pub fn asked(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.things().join("log")).unwrap_or_default();
        let mut names: Vec<&str> = Vec::new();
        let mut asked = Vec::new();
        for (word, name) in log.lines().filter_map(|line| line.split_once(' ')) {
            if !names.contains(&name) {
                names.push(name);
            }
            let number = names.iter().position(|known| *known == name).unwrap() + 1;
            asked.push(format!("{word} {number}"));
        }
        asked
    }

    /// What is there.
    pub fn there(&self) -> Vec<String> {
        let mut there: Vec<String> = std::fs::read_dir(self.things().join("there"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        there.sort();
        there
    }

    /// Fails unless all that was made is gone, each was made at most once, and the store knows.
    #[track_caller]
    pub fn check_nothing_there(&self) {
        assert_eq!(self.there(), Vec::<String>::new(), "{:?}\n{}", self.asked(), self.told());
        let asked = self.asked();
        for (at, line) in asked.iter().enumerate().filter(|(_, line)| line.starts_with("create")) {
            let number = line.split_once(' ').unwrap().1;
            assert_eq!(asked.iter().filter(|other| *other == line).count(), 1, "made twice: {asked:?}");
            let is_destroyed = asked[at..].contains(&format!("destroy {number}"));
            assert!(is_destroyed, "never destroyed: {asked:?}\n{}", self.told());
        }
        assert_eq!(self.count("resource WHERE state <> 'destroyed'"), 0, "{}", self.told());
    }
}
