//! What a person is told about files that are wrong, several faults a file.

use super::super::*;
use super::{CODE_CHANGE, LANES, ONE_LANE, flow, inputs};

/// What a person is told about a workflow with these lanes.
fn told(workflow: &str, config: &str) -> String {
    match read(&inputs(workflow, config)) {
        Ok(definition) if definition.warnings.is_empty() => "clean".to_owned(),
        Ok(definition) => Faults(definition.warnings).to_string(),
        Err(faults) => faults.to_string(),
    }
}

#[test]
fn wrong_keys_types_and_words_are_all_told_at_once() {
    let text = r#"
schema = "striatum.workflow/2"
id = "Code Change"
titel = "typo"
autonomy = "autos"
limits = { grace = "1s" }
[budget]
requeues = -1
active_time = 90
cost_usd = "20"
[[jobs]]
id = "draft"
rol = "author"
timeout = "45"
max_strikes = 0
needs = "other"
writes = ["/abs", "../up", ".git/hooks/", "src/[", 3]
allow_empty = "yes"
interrogable = true
colour = "blue"
verify = "cargo test && cargo fmt"
[[jobs]]
id = "land"
type = "lend"
"#;
    insta::assert_snapshot!(told(text, ONE_LANE), @r#"
    flow.toml:2:10: `striatum.workflow/2` is not known here
      help: write `striatum.workflow/1`
    flow.toml:3:6: `Code Change` is no name
      help: use 1 to 48 of a-z, 0-9, `_` and `-`, beginning with a letter or digit
    flow.toml:4:1: unknown key `titel`
      help: did you mean `title`?
    flow.toml:5:12: `autos` is not known here
      help: did you mean `auto`? one of: auto, step, plan
    flow.toml:6:1: unknown key `limits`
      help: `limits` belongs to config.toml
    flow.toml:8:12: `requeues` is -1, and must be bounded
      help: a whole number from 0 to 100
    flow.toml:9:15: `active_time` must be a duration with a unit
      help: write `active_time = "90s"`; units are ms, s, m, h, d
    flow.toml:10:12: `cost_usd` must be an amount of dollars, not a string
      help: write `cost_usd = 20`
    flow.toml:13:1: unknown key `rol`
      help: did you mean `role`?
    flow.toml:14:11: `45` is no duration
      help: write one number and one unit, such as "45m"; units are ms, s, m, h, d
    flow.toml:15:15: `max_strikes` is 0, and must be bounded
      help: a whole number from 1 to 100
    flow.toml:16:9: `needs` must be a list of names, not a string
      help: write `needs = ["draft"]`
    flow.toml:17:11: `/abs` is absolute; patterns are relative to the work tree
      help: write it relative to the work tree
    flow.toml:17:19: `../up` leads upward
      help: write it relative to the work tree
    flow.toml:17:28: `.git/hooks/` names the protected path `.git`
      help: a protected path is changed by a recorded escape only; leave it out
    flow.toml:17:43: `src/[` is no glob: unclosed character class; missing ']'
      help: `\` takes a glob character literally
    flow.toml:17:52: `writes` takes strings, not an integer
      help: put it in quotes
    flow.toml:18:15: `allow_empty` must be true or false, not a string
      help: write `allow_empty = true`
    flow.toml:19:1: `interrogable` is reserved for a later version
      help: leave it out
    flow.toml:20:1: unknown key `colour`
      help: [[jobs]] has: id, type, title, role, lane, needs, reviews, objective, prompt, inputs, tree, writes, forbids, produces, verify, process, process_execution, effect, shared, outward, ephemeral, revisions, quorum, max_strikes, on_failure, on_exit_zero, next_attempt, allow_empty, allow_overlap, gate_note, into, land_style, trailers, commit_message, timeout
    flow.toml:21:10: `&&` needs a shell, and none is used
      help: write ["sh", "-c", "cargo test && cargo fmt"]
    flow.toml:24:8: `lend` is not known here
      help: did you mean `land`? one of: generic, draft, build, test, review, synthesis, checkpoint, land
    "#);
}

#[test]
fn syntax_errors_do_not_hide_other_faults() {
    let text =
        "schema = \"striatum.workflow/1\"\nid = \"w\nautonomy = \"atuo\"\n[[jobs]\nid = \"a\"\nid = \"b\"\nrole = \n";
    insta::assert_snapshot!(told(text, "[lanes.sh\ncomand = 1"), @r#"
    flow.toml:2:8: not TOML: invalid basic string, expected `"`
    flow.toml:3:12: `atuo` is not known here
      help: did you mean `auto`? one of: auto, step, plan
    flow.toml:4:8: not TOML: unclosed array table, expected `]`
    config.toml:1:10: not TOML: unclosed table, expected `]`
    "#);
}

#[test]
fn absent_keys_are_named_with_an_example() {
    insta::assert_snapshot!(told("title = 'x'\n[[jobs]]\nrole = 'a'\nproduces = [{}]\nephemeral = {}", ONE_LANE), @r#"
    flow.toml:1:1: missing key `schema`
      help: write `schema = "striatum.workflow/1"`
    flow.toml:1:1: missing key `id`
      help: write `id = "draft"`
    flow.toml:2:1: missing key `id`
      help: write `id = "draft"`
    flow.toml:4:13: missing key `name`
      help: write `name = "draft"`
    flow.toml:4:13: an artifact that comes from nowhere
      help: write `path = ".."`, or `from = "stdout"`
    flow.toml:5:13: missing key `resource`
      help: write `resource = "draft"`
    flow.toml:5:13: missing key `create`
      help: write `create = ["make", "all"]`
    flow.toml:5:13: missing key `check`
      help: write `check = ["make", "all"]`
    flow.toml:5:13: missing key `destroy`
      help: write `destroy = ["make", "all"]`
    "#);
    insta::assert_snapshot!(told("", ""), @r#"
    flow.toml:1:1: missing key `schema`
      help: write `schema = "striatum.workflow/1"`
    flow.toml:1:1: missing key `id`
      help: write `id = "draft"`
    flow.toml:1:1: missing key `jobs`
      help: begin each with `[[jobs]]`
    "#);
}

#[test]
fn edges_that_lead_nowhere_are_told() {
    let text = flow(
        r#"
[[jobs]]
id = "a"
role = "author"
needs = ["c", "a", "d"]
[[jobs]]
id = "b"
role = "author"
needs = ["a"]
[[jobs]]
id = "c"
role = "author"
needs = ["b"]
[[jobs]]
id = "c"
reviews = "draft"
[[jobs]]
id = "look"
type = "checkpoint"
role = "author"
lane = "sh"
writes = ["src/"]
[[jobs]]
id = "judge"
reviews = "look"
quorum = 2
revisions = 101
"#,
    );
    insta::assert_snapshot!(told(&text, ONE_LANE), @r"
    flow.toml:7:15: job `a` needs itself
      help: leave it out
    flow.toml:7:20: job `a` needs the unknown job `d`
      help: there are: b, c, judge, look
    flow.toml:11:1: jobs wait for each other: a -> b -> c -> a
      help: take out one of these edges
    flow.toml:17:1: two jobs are named `c`
      help: the other stands at flow.toml:13:1
    flow.toml:18:1: job `c` reviews the unknown job `draft`
      help: there are: a, b, judge, look
    flow.toml:22:1: a `checkpoint` job has no `role`: no agent works it
      help: leave it out
    flow.toml:23:1: a `checkpoint` job has no `lane`: no agent works it
      help: leave it out
    flow.toml:24:1: a `checkpoint` job has no `writes`: no agent works it
      help: leave it out
    flow.toml:27:1: job `judge` reviews `look`, which leaves nothing to review
      help: name the job that made the change
    flow.toml:28:1: `quorum` stands on the reviewed job, and nothing reviews `judge`
      help: leave it out: then every review must accept
    flow.toml:29:13: `revisions` is 101, and must be bounded
      help: a whole number from 0 to 100
    ");
}

#[test]
fn lanes_and_roles_that_do_not_fit_are_told() {
    let config = r#"
[lanes.claude]
adapter = "claud"
[lanes.codex]
adapter = "codex"
fallback = ["codex", "claude-2"]
tty = true
result_from = "result.json"
write_paths = ["relative", "/", "~/x/../y", "/srv/app/.git", "~/.cargo"]
env = ["GIT_DIR", "A B", "HTTP_TIMEOUT"]
[lanes.gemini]
mode = "acp"
command = "gemini"
[lanes.me]
mode = "human"
command = "vi"
[lanes.nobody]
mode = "loop"
[roles.author]
lanes = ["claude", "codx"]
[roles.tester]
lanes = []
"#;
    let text = flow(
        r#"
[[jobs]]
id = "a"
role = "author"
lane = "me"
[[jobs]]
id = "b"
role = "auther"
lane = "gemni"
[[jobs]]
id = "c"
[[jobs]]
id = "d"
role = "tester"
"#,
    );
    insta::assert_snapshot!(told(&text, config), @r#"
    flow.toml:7:1: role `author` may not be played by lane `me`
      help: there are: claude, codx
    flow.toml:10:1: warning: role `auther` is declared nowhere
      help: did you mean `author`?
    flow.toml:11:1: unknown lane `gemni`
      help: did you mean `gemini`?
    flow.toml:13:1: job `c` has no role
      help: write `role = "author"`, or any name for who does it
    flow.toml:15:1: job `d` has no lane, and nothing declares one
      help: declare one here or in config.toml: [lanes.NAME] command = [".."]
    config.toml:3:11: `claud` is not known here
      help: did you mean `claude`? one of: claude, codex, opencode, aider
    config.toml:6:13: lane `codex` can't stand in for itself
      help: name another lane
    config.toml:6:22: unknown lane `claude-2`
      help: did you mean `claude`?
    config.toml:7:1: lane `codex` wants a terminal, which only a `loop` agent gets
      help: leave it out, or write `mode = "loop"`
    config.toml:8:1: `result.json` is no place of an answer
      help: write `stdout-json`, or `stdout-json:/result` for a part of it
    config.toml:9:16: `relative` is neither absolute nor below `~/`
      help: name a folder such as `~/.cargo/registry`, outside every repository
    config.toml:9:28: `/` contains every repository
      help: name a folder such as `~/.cargo/registry`, outside every repository
    config.toml:9:33: `~/x/../y` leads upward
      help: name a folder such as `~/.cargo/registry`, outside every repository
    config.toml:9:45: `/srv/app/.git` lies in a store or a git directory
      help: name a folder such as `~/.cargo/registry`, outside every repository
    config.toml:10:8: `GIT_DIR` never passes through
      help: leave it out
    config.toml:10:19: `A B` is no name of a variable
      help: list names only; the values come from your environment
    config.toml:12:1: mode `acp` is reserved for a later version
      help: write `oneshot` or `loop`
    config.toml:15:1: lane `me` is a person's and has a command
      help: leave out `mode`, or else `command` and `adapter`
    config.toml:18:1: lane `nobody` is `loop` and has no command
      help: write `command = [".."]` or name an `adapter`
    config.toml:20:20: unknown lane `codx`
      help: did you mean `codex`?
    config.toml:22:1: nothing may play the role `tester`
      help: leave the key out for every lane
    "#);
}

#[test]
fn jobs_that_contradict_themselves_are_told() {
    let text = flow(
        r#"
[[jobs]]
id = "a"
role = "author"
writes = ["src/"]
forbids = ["src/gen/"]
tree = "tip"
effect = "read"
into = "main"
produces = [
  { name = "log", path = "out.log" },
  { name = "log", path = "src/log" },
  { name = "both", path = "src/x", from = "stdout" },
  { name = "none" },
]
ephemeral = { resource = "db", create = "mk", check = "ck", destroy = "rm it" }
[[jobs]]
id = "b"
role = "author"
writes = ["src/"]
forbids = ["src/gen/"]
produces = [
  { name = "log", path = "out.log" },
  { name = "gen", path = "src/gen/x" },
]
[[jobs]]
id = "c"
role = "author"
needs = ["b"]
inputs = ["b.lag", "a.log", "zz.x", "plain"]
revisions = 1
[[jobs]]
id = "d"
type = "review"
role = "reviewer"
on_exit_zero = "complete"
[[jobs]]
id = "e"
type = "build"
reviews = "b"
[[jobs]]
id = "f"
reviews = { range = "main" }
"#,
    );
    insta::assert_snapshot!(told(&text, ONE_LANE), @r#"
    flow.toml:9:1: job `a` has `writes`, and would work in no tree of its own
      help: leave out `tree`, or `writes`
    flow.toml:10:1: job `a` reaches further than it says
      help: its other keys make it write; an effect can only be raised
    flow.toml:11:1: `into` means something for `type = "land"` only
      help: leave it out
    flow.toml:14:3: two artifacts of job `a` are named `log`
      help: rename one
    flow.toml:15:3: artifact `both` has both `path` and `from`
      help: keep one of the two
    flow.toml:16:3: an artifact that comes from nowhere
      help: write `path = ".."`, or `from = "stdout"`
    flow.toml:18:1: `db` is no shared resource of job `a`
      help: write `shared = ["db"]`
    flow.toml:22:1: `a` and `b` may run side by side, and their scopes meet: `src/`
      help: order them (`needs = ["a"]`), narrow one of the scopes, or write `allow_overlap = true`
    flow.toml:25:3: artifact `log` at `out.log` is outside `writes` (path_outside_scope)
      help: add `out.log` to `writes`, or use `from = "stdout"`
    flow.toml:26:3: artifact `gen` at `src/gen/x` is outside `writes` (path_forbidden)
      help: add `src/gen/x` to `writes`, or use `from = "stdout"`
    flow.toml:32:11: job `b` produces no `lag`
      help: did you mean `log`?
    flow.toml:32:20: `a` does not come before `c`
      help: add it to `needs`, or to those of a job that `c` needs
    flow.toml:32:29: unknown job `zz`
      help: there are: a, b, d, e, f
    flow.toml:32:37: `plain` is no artifact
      help: write `job.name`
    flow.toml:33:1: `revisions` is for a job that reviews another
      help: write it on the review, or leave it out
    flow.toml:36:1: review `d` does not say what it reviews
      help: write `reviews = "JOB"`, or `reviews = { range = "A..B" }`
    flow.toml:38:1: a review without a verdict is never complete
      help: leave it out
    flow.toml:41:1: a job that reviews is no `build` job
      help: leave out `type`
    flow.toml:44:1: job `f` has no role
      help: write `role = "author"`, or any name for who does it
    flow.toml:45:11: `main` is no range of commits
      help: write `reviews = { range = "main..HEAD" }`
    "#);
}

#[test]
fn templates_are_checked_where_they_stand() {
    let config = "[lanes.sh]\ncommand = [\"sh\", \"-c\", \"echo ${HOME} $${HOME} ${promt} ${params.modle}\"]\nmodel = \"${params.model}\"\n";
    let text = flow(
        r#"
title = "${job}"
[params]
model = "m1"
[[jobs]]
id = "a"
role = "author"
objective = "${params.task} in ${job} from ${inputs.b.c}, ${cwd}"
verify = ["test -e ${tmp}/x", ["sh", "-c", "ls ${unclosed"]]
writes = ["${params.dir}/"]
"#,
    );
    insta::assert_snapshot!(told(&text, config), @r"
    flow.toml:4:9: unknown template `${job}`
      help: known here: params.NAME; `$${` is a literal `${`
    flow.toml:10:13: unknown template `${cwd}`
      help: known here: params.NAME, job, inputs.JOB.NAME; `$${` is a literal `${`
    flow.toml:10:13: `${params.task}` names a parameter that nothing declares
      help: declare it: [params] task = { required = true }
    flow.toml:11:31: unknown template `${unclosed}`
      help: known here: prompt, prompt_file, packet_file, result_file, inputs, cwd, scratch, tmp, run, job, attempt, session, role, lane, model, budget.cost_left, resource, striatum; `$${` is a literal `${`
    flow.toml:12:11: `${params.dir}` is not replaced here
      help: this string takes no templates; `$${` is a literal `${`
    config.toml:2:11: unknown template `${HOME}`
      help: known here: prompt, prompt_file, packet_file, result_file, inputs, cwd, scratch, tmp, run, job, attempt, session, role, lane, model, budget.cost_left, resource, striatum; `$${` is a literal `${`
    config.toml:2:11: unknown template `${promt}`
      help: did you mean `${prompt}`? `$${` is a literal `${`
    config.toml:2:11: `${params.modle}` names a parameter that nothing declares
      help: did you mean `${params.model}`?
    ");
}

#[test]
fn commands_are_lists_or_plain_words() {
    let text = flow(
        r#"
[tree]
setup = ["npm", "ci", "--silent"]
[[jobs]]
id = "a"
role = "author"
verify = ["make lint", ["make", "test"], "A=1 make", "echo 'x", "ls > out", [], ""]
process = { build = [["cargo", "build"]], tset = "x" }
"#,
    );
    insta::assert_snapshot!(told(&text, ONE_LANE), @r#"
    flow.toml:5:10: a list of commands, of which one begins with `-`
      help: for one command write [["npm", "ci", "--silent"]]
    flow.toml:9:42: `A=1` before a command needs a shell, and none is used
      help: write ["env", "A=1", "make"]
    flow.toml:9:54: the quote ' is never closed
      help: write the words as a list
    flow.toml:9:65: `>` needs a shell, and none is used
      help: write ["sh", "-c", "ls > out"]
    flow.toml:9:77: an empty command
      help: write ["make", "all"]
    flow.toml:9:81: an empty command
      help: write the words as a list
    flow.toml:10:43: unknown key `tset`
      help: did you mean `test`?
    "#);
}

#[test]
fn scopes_that_meet_side_by_side_are_told() {
    let job = |id: &str, rest: &str| format!("[[jobs]]\nid = \"{id}\"\nrole = \"author\"\n{rest}\n");
    let jobs = [
        job("a", "writes = [\"src/\"]"),
        job("b", "writes = [\"src/b/*.rs\", \"docs/\"]"),
        job("c", "writes = [\"docs/\"]\nallow_overlap = true"),
        job("d", "writes = [\"src/\", \"docs/\"]\nneeds = [\"a\", \"b\"]"),
        job("e", "writes = [\"tests/\"]"),
    ];
    insta::assert_snapshot!(told(&flow(&jobs.concat()), ONE_LANE), @r#"
    flow.toml:10:1: `a` and `b` may run side by side, and their scopes meet: `src/` and `src/b/*.rs`
      help: order them (`needs = ["a"]`), narrow one of the scopes, or write `allow_overlap = true`
    "#);
}

#[test]
fn warnings_do_not_refuse() {
    let config = "[lanes.one]\ncommand = 'a'\nmodel = 'm'\n[lanes.two]\ncommand = 'b'\nmodel = 'm'\n[roles.author]\n";
    let text = flow(
        r#"
author_roles = ["author", "editor"]
params = { task = { required = true, default = "x" } }
budget = { launches = 1 }
[[jobs]]
id = "a"
role = "auhtor"
lane = "one"
forbids = ["x"]
[[jobs]]
id = "r"
role = "auhtor"
lane = "two"
reviews = "a"
"#,
    );
    insta::assert_snapshot!(told(&text, config), @r#"
    flow.toml:4:27: warning: no job has the role `editor`
      help: there are: auhtor, author
    flow.toml:5:38: warning: parameter `task` is required and has a default, which is never used
      help: keep one of the two
    flow.toml:6:12: warning: a budget of 1 launches for 2 jobs
      help: each job needs at least one
    flow.toml:9:1: warning: role `auhtor` is declared nowhere
      help: did you mean `author`?
    flow.toml:11:1: warning: `forbids` without `writes` forbids nothing
      help: leave it out
    flow.toml:14:1: warning: role `auhtor` is declared nowhere
      help: did you mean `author`?
    flow.toml:14:1: warning: job `a` is reviewed by the role that wrote it, `auhtor`
      help: give the review a role of its own
    flow.toml:16:1: warning: `r` is fresh of author, editor only, and `auhtor` worked `a`
      help: write `author_roles = ["author", "editor", "auhtor"]` at the top
    flow.toml:16:1: warning: `a` and its review `r` declare the same model, m
      help: the verdict is stamped `same_model`; another lane would be more independent
    "#);
    let strict = text.replace("author_roles", "require_distinct_models = true\nauthor_roles");
    assert!(read(&inputs(&strict, config)).is_err());
}

#[test]
fn without_git_there_are_no_trees_to_own_and_nothing_to_land() {
    let text = CODE_CHANGE.replace("needs = [\"review\"]", "");
    let bare = Inputs { git: false, ..inputs(&text, LANES) };
    insta::assert_snapshot!(read(&bare).unwrap_err(), @r"
    flow.toml:12:1: job `draft` wants a work tree of its own, and there is no git repository
      help: run `git init`, or leave out `writes` and use `produces`
    flow.toml:22:1: job `land` lands, and there is no git repository
      help: run `git init`, or leave the job out
    ");
    let plain = flow("[[jobs]]\nid = 'a'\nrole = 'author'\n[[jobs]]\nid = 'r'\nreviews = 'a'");
    let definition = read(&Inputs { git: false, ..inputs(&plain, ONE_LANE) }).unwrap();
    assert_eq!(definition.jobs[1].tree, crate::domain::frozen::TreeKind::None);
}

#[test]
fn a_constrained_run_confines_every_lane() {
    let text = flow("operator_mode = 'constrained'\n[[jobs]]\nid = 'a'\nrole = 'author'\n");
    let definition = read(&inputs(&text, ONE_LANE)).unwrap();
    assert!(definition.run.constrained);
    assert_eq!(definition.run.lanes["sh"].sandbox, crate::domain::frozen::Sandbox::Scope);
    insta::assert_snapshot!(told(&text, &format!("{ONE_LANE}sandbox = 'off'\n")), @r"
    config.toml:3:1: lane `sh` has no sandbox, and a constrained run puts every lane under `scope`
      help: leave the key out
    ");
}

#[test]
fn a_key_given_twice_or_without_a_value_is_told() {
    insta::assert_snapshot!(told(&flow("id = 'again'\n[[jobs]]\nid = 'a'\nid = 'b'\nrole = \n"), ONE_LANE), @r"
    flow.toml:3:1: not TOML: duplicate key
    flow.toml:6:1: not TOML: duplicate key
    flow.toml:7:8: not TOML: string values must be quoted, expected literal string
    ");
}
