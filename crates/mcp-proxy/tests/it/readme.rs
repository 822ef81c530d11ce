//! The README's test commands are the ones the project is tested with.

#[test]
fn the_two_commands_are_the_ones_that_are_run() {
    let readme = include_str!("../../../../README.md");
    let commands: Vec<&str> =
        readme.split("```sh test\n").skip(1).filter_map(|block| block.split("```").next()).map(str::trim).collect();
    assert_eq!(
        commands,
        ["cargo install --locked --path crates/mcp-proxy && mcp-proxy demo", "cargo test --workspace --locked"]
    );
    let ci = include_str!("../../../../.ci/run");
    for command in commands {
        assert!(ci.contains(command), ".ci/run runs `{command}`");
    }
}
