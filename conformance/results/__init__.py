"""What outcomes become: reports, and what can be said of several of them."""
