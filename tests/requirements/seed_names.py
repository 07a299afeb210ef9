"""The tests of the systems that Bide answers to, by system and file: each has its row in docs/seed-tests.md.

A line in words stands for tests that are known by what they are about, and not by name.
"""

from __future__ import annotations

SYNAPTIC = {
    "interrupt.rs": """
        interrupt_pauses_graph
        interrupt_requires_checkpointer_for_resume
        graph_result_complete_api
        graph_result_interrupted_api
        command_update_only
    """,
    "compiled.rs": """
        interrupt_before_stops_execution
        interrupt_after_stops_execution
        resume_from_checkpoint
        update_state_modifies_checkpoint
        max_iterations_guard
    """,
    "get_state.rs": """
        get_state_returns_none_for_empty_thread
        get_state_returns_latest_state
        get_state_after_interrupt_before
        get_state_errors_without_checkpointer
        get_state_history_returns_empty_for_new_thread
        get_state_history_returns_all_checkpoints
        get_state_history_errors_without_checkpointer
        get_state_history_with_interrupt_shows_partial
    """,
    "checkpoint.rs": """
        memory_saver_put_get
        memory_saver_list
        memory_saver_returns_latest
        memory_saver_empty_thread
        checkpoint_with_metadata
        get_by_checkpoint_id
        list_returns_checkpoints_in_order
        threads_are_isolated
    """,
    "checkpointer_basic.rs": """
        test_checkpoint_with_parent_and_metadata
        test_idempotent_put
    """,
    "stream.rs": """
        stream_three_node_graph_values
        stream_updates_mode
        stream_with_interrupt_after
        stream_with_checkpoint_resume
        stream_conditional_routing
    """,
    "stream_modes.rs": """
        stream_modes_single_mode_values
        stream_modes_multiple_modes
        stream_modes_empty_modes_no_events
    """,
    "react_agent_options.rs": """
        agent_with_checkpointer
        agent_with_interrupt_before_tools
        agent_with_interrupt_after_agent
    """,
    "command.rs": """
        goto_command_skips_node
        goto_command_redirects_to_earlier_node
        end_command_stops_execution
        no_command_preserves_normal_routing
        goto_command_works_in_stream_mode
        end_command_works_in_stream_mode
    """,
    "cache.rs": """
        cached_node_executes_once_for_same_input
        cached_node_re_executes_for_different_input
        cache_expires_after_ttl
        uncached_node_always_executes
    """,
    "deferred.rs": """
        deferred_node_compiles_and_runs
        deferred_node_is_queryable
        incoming_edge_count_computed_correctly
    """,
    "supervisor.rs": """
        compiles_with_two_agents
        routes_to_correct_agent
        terminates_when_no_tool_call
        custom_system_prompt
    """,
    "swarm.rs": """
        compiles_with_two_agents
        entry_is_first_agent
        terminates_no_tool_calls
        handoff_routes_to_target
        non_handoff_tool_executes
    """,
    "human_in_the_loop.rs": """
        approved_call_passes_through
        rejected_call_returns_rejection_message
        for_tools_guards_only_listed_tools
        for_tools_allows_unlisted_tools_without_approval
        approval_callback_receives_correct_tool_name_and_args
        callback_error_propagates_to_caller
    """,
}

LANGGRAPHGO = {
    "interrupt_test.go": """
        TestGraphInterrupt/InterruptBefore
        TestGraphInterrupt/InterruptAfter
    """,
    "resume_test.go": """
        TestGraphResume/ResumeAfter
        TestGraphResume/ResumeBefore
    """,
    "state_graph_interrupt_test.go": """
        TestStateGraph_Interrupt
        TestStateGraph_InterruptWithStateUpdate
        TestStateGraph_InterruptWithValueTypeState
    """,
    "update_state_test.go": """
        TestUpdateState
    """,
    "checkpointing_test.go": """
        TestMemoryCheckpointStore_SaveAndLoad
        TestMemoryCheckpointStore_LoadNonExistent
        TestMemoryCheckpointStore_List
        TestMemoryCheckpointStore_Delete
        TestMemoryCheckpointStore_Clear
        TestFileCheckpointStore_SaveAndLoad
        TestFileCheckpointStore_LoadNonExistent
        TestFileCheckpointStore_List
        TestFileCheckpointStore_Delete
        TestFileCheckpointStore_Clear
        TestCheckpointableRunnable_Basic
        TestCheckpointableRunnable_ManualCheckpoint
        TestCheckpointableRunnable_LoadCheckpoint
        TestCheckpointableRunnable_ClearCheckpoints
        TestCheckpointableStateGraph_CustomConfig
        TestCheckpointing_Integration
        TestCheckpointListener_ErrorHandling
        TestAutoResume_WithThreadID
        TestAutoResume_InterruptAndResume
        TestAutoResume_MergeStates
        TestWithThreadID
        TestWithInterruptBeforeAfter
        TestMaxCheckpoints_AutoCleanup
        TestMaxCheckpoints_ZeroOrNegative
    """,
    "main_test.go": """
        TestCheckpointSavedOnInterrupt
        TestResumeFromInterrupt
        TestCheckpointNotSavedOnRegularError
    """,
    "store/*_test.go": """
        overwrite
        delete of what is missing is a no-op
        filter by thread or session
        permissions
        concurrency
        bad state or metadata JSON
        save conflict
        database errors
    """,
    "type_registry_test.go": """
        typed round trip
    """,
    "command_test.go": """
        TestCommandGoto
    """,
    "parallel_execution_test.go": """
        TestParallelExecution_FanOut
        TestStateGraph_ParallelExecution
    """,
    "subgraph_test.go": """
        TestSubgraph
    """,
    "retry_test.go": """
        TestRetryNode/SuccessOnFirstAttempt
        TestRetryNode/RetryOnTransientFailure
        TestRetryNode/MaxAttemptsExceeded
        TestRetryNode/NonRetryableError
        TestTimeoutNode/SuccessWithinTimeout
        TestTimeoutNode/TimeoutExceeded
        TestTimeoutNode/RespectContextCancellation
        TestCircuitBreaker/CircuitOpensAfterFailures
        TestCircuitBreaker/CircuitClosesAfterSuccess
        TestRateLimiter/AllowsCallsWithinLimit
        TestRateLimiter/BlocksCallsExceedingLimit
        TestRateLimiter/AllowsCallsAfterWindowExpires
        TestExponentialBackoffRetry/SuccessAfterRetries
        TestExponentialBackoffRetry/MaxAttemptsReached
        TestExponentialBackoffRetry/ContextCancellation
    """,
    "examples": """
        time_travel
        payment_interrupt
    """,
}

EDGE_AGENT = {
    "test_stategraph_checkpoint.py": """
        test_save_checkpoint_creates_valid_pickle_file
        test_load_checkpoint_returns_correct_structure
        test_resume_from_checkpoint_continues_execution
        test_invoke_checkpoint_resumes_correctly
        test_stream_checkpoint_resumes_correctly
        test_auto_save_at_interrupt_before
        test_auto_save_at_interrupt_after
        test_error_handling_file_not_found
        test_error_handling_corrupt_file
        test_error_handling_incompatible_checkpoint
        test_existing_tests_still_pass
        test_checkpoint_at_fanin_includes_parallel_results
        test_config_merge_on_resume
        test_no_checkpoint_when_checkpoint_dir_none
        test_interrupt_before_stops_execution
        test_invoke_none_with_checkpoint_resumes
        test_stream_none_with_checkpoint_resumes
        test_checkpoint_required_for_interrupts
        test_invoke_none_without_checkpoint_raises
        test_multiple_interrupts_require_multiple_resumes
        test_memory_checkpointer_stores_checkpoints
        test_interrupt_after_skips_reexecution_on_resume
    """,
    "test_interrupt_state_update.py": """
        test_interrupt_before_and_resume_with_state_update
        test_stream_interrupt_resume_with_state_update
    """,
    "test_stategraph_core.py": """
        test_invoke_with_interrupts
        test_complex_workflow_with_interrupts
        test_interrupt_handling
    """,
    "test_yaml_engine_checkpoint.py": """
        unit_101
        unit_102
        unit_103
        unit_104
        unit_105
        unit_106
        unit_107
        unit_108
        unit_109
        unit_110
        unit_111
        unit_112
        unit_113
        unit_114
        unit_115
        unit_116
        unit_117
        unit_118
        unit_119
        int_015
        int_016
        int_017
        unit_120
        unit_121
        unit_122
        unit_123
    """,
    "test_stategraph_stream.py": """
        test_stream_parallel_interrupt_support
    """,
    "test_remote_validation.py": """
        test_detect_interrupt_before_in_scope
        test_detect_interrupt_after_in_scope
        test_no_error_when_interrupt_outside_scope
    """,
    "test_yaml_streams.py": """
        interrupt on a stream node is refused
    """,
    "test_secrets_yaml_integration.py": """
        test_secrets_backend_not_in_checkpoint
    """,
    "test_yaml_engine_memory.py": """
        memory with TTL survives a checkpoint
        expired memory is excluded
    """,
    "test_cli.py": """
        test_load_checkpoint_valid
        test_load_checkpoint_missing_file
        test_load_checkpoint_invalid_format
        test_handle_interrupt_continue
        test_handle_interrupt_update_state
        test_handle_interrupt_update_empty
        test_handle_interrupt_abort
        test_handle_interrupt_invalid_json
        test_handle_interrupt_invalid_choice
        test_resume_missing_checkpoint
        test_resume_missing_workflow
    """,
    "test_interactive.py": """
        sanitised names
        save, load, list and delete states with confirmation
        test_complete_save_load_cycle
    """,
    "test_checkpoint.rs": """
        test_memory_checkpointer_save_and_load
        test_memory_checkpointer_load_nonexistent
        test_memory_checkpointer_list
        test_memory_checkpointer_delete
        test_memory_checkpointer_overwrite
        test_file_checkpointer_save_and_load
        test_file_checkpointer_load_nonexistent
        test_file_checkpointer_list
        test_file_checkpointer_delete
        test_file_checkpointer_persistence
        test_delete_nonexistent_checkpoint
        test_checkpoint_ids_are_unique
        test_checkpoint_unicode_state
        test_checkpoint_large_state
        test_checkpoint_complex_state
        test_checkpoint_empty_state
        test_memory_checkpointer_concurrent_access
        test_checkpoint_from_invalid_json
        test_checkpoint_from_corrupt_bytes
        test_checkpoint_from_empty_bytes
        test_checkpoint_from_incomplete_json
        test_file_checkpointer_corrupt_file
        test_file_checkpointer_readonly_directory
        test_executor_saves_checkpoint_on_interrupt_before
        test_executor_saves_checkpoint_on_interrupt_after
        test_stream_executor_saves_checkpoint_on_interrupt_before
        test_stream_executor_saves_checkpoint_on_interrupt_after
        test_multiple_checkpoints_saved_independently
        test_execution_without_checkpointer
    """,
}

LONGHOUSE = {
    "test_checkpointer.py": """
        test_sqlite_returns_memory_saver
        test_sqlite_memory_returns_memory_saver
        test_postgresql_returns_postgres_saver
        test_postgresql_caches_instance
        test_postgresql_setup_failure_falls_back_to_memory
        test_unknown_database_falls_back_to_memory
        test_default_engine_used_when_none_provided
        test_clear_cache_resets_postgres_instances
        test_memory_saver_can_store_and_retrieve_checkpoint
        test_checkpointer_survives_multiple_calls
    """,
    "test_continuation_idempotency.py": """
        test_continuation_allows_null_continuation_of_run_id
        test_concurrent_resume_only_runs_once
    """,
    "test_langgraph_free_resume.py": """
        test_resume_success_with_worker_job
        test_resume_skipped_when_not_waiting
        test_concurrent_resume_only_runs_once
        test_resume_fails_when_no_tool_call_id
        test_tool_call_id_fallback_lookup
        test_run_continuation_creates_tool_message
        test_run_continuation_idempotent_tool_message
        test_spawn_worker_triggers_interrupt
    """,
    "test_master_worker_flow_integration.py": """
        test_supervisor_worker_interrupt_resume_flow
        test_spawn_worker_fallback_when_outside_runnable_context
        test_interrupt_triggers_waiting_status
        test_resume_completes_interrupted_run
        test_different_tasks_create_separate_workers
    """,
    "test_spawn_worker_idempotency.py": """
        test_exact_task_reuse_while_in_progress
        test_different_tasks_create_separate_workers
        test_completed_job_returns_cached_result
        test_no_fuzzy_matching_for_similar_tasks
        test_cross_run_isolation
    """,
    "test_supervisor_worker_invariants.py": """
        test_resume_only_works_on_waiting_runs
        test_resume_skips_nonexistent_run
        test_atomic_state_transition_prevents_double_resume
        test_run_not_success_while_worker_active
        test_worker_job_linked_to_supervisor_run
        test_waiting_run_cannot_transition_to_success_directly
    """,
    "test_durable_runs.py": """
        test_timeout_produces_deferred_status
        test_timeout_emits_deferred_event
        test_normal_completion_still_works
        test_resume_endpoint_resumes_waiting_run
        test_resume_endpoint_skips_non_waiting_run
        test_worker_completion_triggers_resume
        test_heartbeat_resets_no_progress_counter
    """,
    "test_durable_runs_return_on_deferred.py": """
        true returns immediately
        false continues to success
        false continues to failure
        test_no_timeout_completes_normally
    """,
    "test_barrier_race_conditions.py": """
        test_atomic_barrier_check
        test_barrier_already_resuming_returns_skipped
        test_worker_job_starts_with_created_status
        test_reaper_finds_expired_barriers
        test_reaper_ignores_non_expired_barriers
        test_reaper_ignores_completed_barriers
        test_barrier_marked_failed_on_error
        test_barrier_reused_on_reinterrupt
    """,
    "test_async_inbox_model.py": """
        test_wait_for_worker_raises_interrupt_for_running_job
        test_wait_for_worker_returns_result_for_completed_job
        test_wait_for_worker_interrupt_propagates_through_gather
        test_pending_tool_call_id_takes_priority_over_worker_job
        test_spawn_worker_non_blocking
        test_cancel_worker_sets_status_to_cancelled
        test_cancel_already_completed_job_returns_error
    """,
    "test_worker_inbox_continuation.py": """
        inbox run on a terminal parent
        skipped when WAITING
        failure carried
        model and trace inherited
        first worker creates it, second queues a follow-up
        unique constraint
        root_run_id kept
    """,
    "test_resumable_stream.py": """
        test_stream_replay_from_start
        test_stream_replay_from_event_id
        test_stream_with_last_event_id_header
        test_stream_exclude_tokens
        test_stream_run_not_found
        test_stream_completed_run_closes_immediately
        test_stream_event_ids_are_monotonic
        test_stream_resumption_after_reconnect
        test_stream_keeps_open_for_pending_workers_and_emits_worker_complete
    """,
    "test_event_store.py": """
        persists
        ids monotonic
        test_invalid_payload_raises_valueerror
        events after an id, with a filter of tokens
        cascade delete
        latest id
        isolation per run
        datetimes
    """,
    "test_stream_control.py": """
        close marker honoured only after its event id is streamed
        keep_open cancels close
        ttl at most 5 minutes
        fallback when absent
    """,
    "test_agent_state_recovery.py": """
        stuck runs and jobs found, active ones untouched, repeatable
    """,
    "test_single_run_guard.py": """
        test_api_returns_409_for_concurrent_runs
        lock released on success
    """,
    "test_internal_auth.py": """
        missing or wrong token is 403
        forwarded-for not trusted
    """,
    "test_triggers.py": """
        webhook fires
        bad token, unknown or no auth is 404
        oversized is 413
    """,
    "test_jarvis_runs.py": """
        attach to completed, failed and in-progress runs
        other tenant is 404
    """,
    "parallel-workers.spec.ts": """
        three spawned, three complete, one waiting and one resumed
    """,
    "continuation_smoke.spec.ts": """
        same run completes with the worker's text
    """,
    "jarvis-worker-progress-reconnect.spec.ts": """
        orphan tool events reconcile to their job and clear
    """,
    "core/jarvis-worker-input-unblocked.spec.ts": """
        input usable while a worker runs
    """,
}

SYSTEMS = {"Synaptic": SYNAPTIC, "langgraphgo": LANGGRAPHGO, "The Edge Agent": EDGE_AGENT, "Longhouse": LONGHOUSE}


def seed_tests() -> list[str]:
    """Every test, as `file::name`, in the order of the page."""
    return [
        f"{file}::{name.strip()}"
        for files in SYSTEMS.values()
        for file, names in files.items()
        for name in names.strip().splitlines()
    ]
