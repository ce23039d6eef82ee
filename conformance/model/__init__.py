"""The records that everything else speaks of: builds, cases, rules, outcomes, graphs, reports."""
