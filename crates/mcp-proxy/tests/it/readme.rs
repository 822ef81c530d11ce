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

/// Where the tests of the proxy tool are, on either side of it.
const OF_PROXY_TOOL: [&str; 10] = [
    include_str!("client_commands.rs"),
    include_str!("proxy_tool.rs"),
    include_str!("proxy_tool_batch.rs"),
    include_str!("proxy_tool_size.rs"),
    include_str!("proxy_tool_spec.rs"),
    include_str!("unwrap.rs"),
    include_str!("../../../mcp-gateway/tests/playbook/proxy_tool.rs"),
    include_str!("../../../mcp-gateway/tests/playbook/unwrapping.rs"),
    include_str!("../../../mcp-client/tests/plain.rs"),
    include_str!("../../../mcp-client/tests/proxy_tool.rs"),
];

#[test]
fn every_clause_of_the_proxy_extension_names_tests_that_exist() {
    let document = include_str!("../../../../docs/proxy-tool.md");
    let (_, table) = document.split_once("| clause | says | tests |\n|---|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let named: Vec<&str> = rows
        .flat_map(|row| row.rsplit('|').nth(1).unwrap().split(','))
        .map(|test| test.trim().trim_matches('`'))
        .collect();
    for test in &named {
        let definition = format!("fn {test}(");
        assert!(OF_PROXY_TOOL.iter().any(|file| file.contains(&definition)), "there is no `{test}`");
    }
    let clauses = include_str!("proxy_tool_spec.rs").split("#[test]\nfn ").skip(1);
    for test in clauses.filter_map(|rest| rest.split('(').next()) {
        assert!(named.contains(&test), "docs/proxy-tool.md does not name `{test}`");
    }
}
