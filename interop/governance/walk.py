"""A person keeps an agent from deleting repositories: step by step, and as the client sees it."""

from harness.processes import RunFailed
from holds.checks import expect, expect_in

from .stage import LIFTED, LONG, REASON, SHORT

DENIED = -32000
REPOS = "test-repo, notes"


def walked(stage):
    """What reads passes, what deletes is denied with the reason, and the audit has both."""
    has_reason = stage.cast.client != "py"
    stage.write_rules(LONG if has_reason else SHORT)
    client, shell = stage.connect()
    expect("the repositories", client.text(client.call("github_list_repos")), REPOS)
    error = refused(client, "github_delete_repo", {"name": "test-repo"})
    expect_in("the denial", "github.delete", error["message"])
    expect("whether the denial has the reason", REASON.rstrip(".") in error["message"], has_reason)
    # A server that takes names in any case must not see it either.
    refused(client, "GitHub_Delete_Repo", {"name": "test-repo"})
    expect("the repositories, again", client.text(client.call("github_list_repos")), REPOS)
    stage.close()
    expect("what reached the server", stage.journal(), ["github_list_repos", "github_list_repos"])
    check_audit(stage)


def changed(stage):
    """The rules change while the client is connected, and count from then on."""
    stage.write_rules(SHORT)
    client, shell = stage.connect()
    refused(client, "github_delete_repo", {"name": "test-repo"})
    stage.write_rules("{")
    stage.write_rules(LIFTED)
    outcome = shell.until("a call that the new rules allow", lambda: allowed(client))
    expect_in("what the server said", "deleted test-repo", str(outcome))
    expect("what is left", client.text(client.call("github_list_repos")), "notes")
    stage.close()
    versions = {line["rules"]: line["verdict"] for line in stage.decisions() if line["operation"] == "delete"}
    expect("one verdict a version", sorted(versions.values()), ["allow", "deny"])
    shell.run("audit", "--verify")


def allowed(client):
    outcome = client.outcome(client.call("github_delete_repo", {"name": "test-repo"}))
    if "error" in outcome and outcome["error"]["code"] != DENIED:
        raise RunFailed(f"neither denied nor allowed: {outcome}")
    return outcome.get("result")


def refused(client, tool, arguments):
    outcome = client.outcome(client.call(tool, arguments))
    if "error" not in outcome:
        raise RunFailed(f"{tool} was not denied: {outcome}")
    error = outcome["error"]
    expect(f"the code of {tool}'s denial", error["code"], DENIED)
    expect_in(f"{tool}'s denial", "Permission denied", error["message"])
    return error


def check_audit(stage):
    seen = [(line["tool"], line["operation"], line["verdict"], line.get("rule"), line["outcome"]) for line in stage.decisions()]
    listed = ("github_list_repos", "read", "allow", "github.read", "ok")
    denied = [(tool, "delete", "deny", "github.delete", None) for tool in ("github_delete_repo", "GitHub_Delete_Repo")]
    expect("the audit", seen, [listed, *denied, listed])
    expect("the audit's server", {line["server"] for line in stage.decisions()}, {"github"})
    stage.shell.run("audit", "--verify")
