"""Running the site on one machine: embedded servers, process supervision, the `demo` and `test` commands."""
