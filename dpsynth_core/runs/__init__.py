"""Running a mechanism: in this process, or in a worker that is watched, cancelled and charged."""
