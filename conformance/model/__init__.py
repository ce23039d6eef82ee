"""The records that all other packages use: builds, cases, rules, outcomes, graphs, reports."""
