"""The page in Chromium: each acceptance scenario and the test that is its witness.

1 newcomer, 15 min            test_newcomer: a_newcomer_gets_a_draft, signed_and_released
2 by keyboard; no script      test_keyboard: keys_alone_lead_from_an_empty_project
3 rebinding                   test_newcomer: another_name_for_the_same_address
4 foreign pages               test_newcomer: a_foreign_page_can_neither_look_nor_change
5 another local server        test_newcomer: another_local_server_gets_no_cookie
6 link twice, process list    test_newcomer: a_link_opens_the_page_once; _projects: a_killed_server
7 two tabs                    test_newcomer: two_tabs_are_asked
8 Back, reload, double click  test_newcomer: a_newcomer_gets_a_draft
9 cancel in every stage       test_projects: a_cancelled_draft (20 times with SHOAL_LONG=1)
10 looks beside a job         test_projects: a_cancelled_draft; 1 M rows: benchmarks, --only ui
11 300 columns                test_projects: 300_columns
12 gap, duplicate, 2 parents  test_projects: a_gap_blocks, a_killed_job (which runs it)
13 kills, full disk           test_projects: a_killed_job, _desk, _server, a_disk_that_refuses
14, 15 canary; odd text       test_projects: odd_names_are_text
16 touched after the draft    test_newcomer: what_is_touched
17 the copied command         test_newcomer: the_copied_command
18 infeasible, broken         test_projects: what_no_release_keeps, a_broken_promise
19 stream; open 24 h          test_watching ('make soak-page HOURS=24')
20 axe, 320 px, dark          test_newcomer: the_page_is_accessible
21 seven tabs                 test_newcomer: seven_windows
22 no network                 test_newcomer: nothing_outside_is_asked
23 undo twelve edits          test_newcomer: twelve_edits
24 what is written            test_newcomer: signed_and_released; test_projects: others_in
"""
