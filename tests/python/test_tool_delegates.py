"""Other delegates on the command line, and none."""


def test_external_delegates_run_in_our_interpreter(tool, mobilenet, delegate_path):
    """The delegate as any other: by its path, with its options; beside the built-in one, alone, and twice."""
    quick = ["--graph", mobilenet, "--num_runs", 1, "--min_secs", 0, "--warmup_runs", 0, "--warmup_min_secs", 0]
    external = ["--external_delegate_path", delegate_path, "--external_delegate_options"]
    alone = tool("benchmark", *quick, "--use_fuselite=false", *external, "num_threads:2;jit:off")
    assert "Explicitly applied EXTERNAL delegate, and the model graph will be completely executed" in alone
    assert f"External delegate path: [{delegate_path}]" in alone and "FUSELITE" not in alone
    after = tool("benchmark", *quick, *external, "num_threads:1")
    assert "Though EXTERNAL delegate is explicitly applied" in after  # nothing is left for it
    both = tool("benchmark", *quick, "--use_fuselite=false", *external, "ops_deny:DEPTHWISE_CONV_2D", *external, "num_threads:1")
    assert "EXTERNAL delegate, and the model graph will be completely executed" in both
    partly = tool("benchmark", *quick, "--fuselite_ops_deny=CONV_2D", "--max_delegated_partitions=3", *external, "jit:off")
    assert "partially executed by the delegate w/ 3 delegate kernels" in partly


def test_delegates_are_applied_in_the_order_of_their_flags(tool, mobilenet, delegate_path):
    """What the first takes is gone for the next: of two that take everything, the second gets nothing."""
    quick = ["--graph", mobilenet, "--dry_run=true"]
    external = ["--external_delegate_path", delegate_path]
    nothing = "Though FUSELITE delegate is explicitly applied, the model graph will not be executed"
    assert nothing in tool("benchmark", *quick, *external, "--use_fuselite")
    assert nothing not in tool("benchmark", *quick, "--use_fuselite", *external)
    assert nothing not in tool("benchmark", *quick, *external)  # where fuselite has no place it is first
    all_but_depthwise = [*external, "--external_delegate_options", "ops_deny:DEPTHWISE_CONV_2D"]
    between = tool("benchmark", *quick, *all_but_depthwise, "--use_fuselite", *external)
    assert "FUSELITE delegate, and the model graph will be partially executed by the delegate w/ 17 delegate kernels" in between


def test_profile_without_fuselite_has_the_hosts_rows(tool, mobilenet):
    out = tool("profile", mobilenet, "--num_runs", 1, "--use_fuselite=false")
    assert "SOFTMAX" in out and out.endswith(" us together\n")


def test_external_delegates_that_cannot_be_loaded_are_named(tool, mobilenet, delegate_path):
    wrong = tool("run", mobilenet, "--external_delegate_path", "/nowhere.so", status=2)
    assert "/nowhere.so" in wrong
    option = tool(
        "run", mobilenet, "--external_delegate_path", delegate_path, "--external_delegate_options", "num_thread:2", status=2
    )
    assert "num_thread is unknown; the nearest valid one is num_threads" in option
    assert "is not KEY:VALUE" in tool(
        "run", mobilenet, "--external_delegate_path", delegate_path, "--external_delegate_options", "num_threads", status=2
    )


def test_diff_compares_other_delegates(tool, mobilenet, delegate_path):
    out = tool("diff", mobilenet, "--use_fuselite=false", "--external_delegate_path", delegate_path)
    assert "within" in out
