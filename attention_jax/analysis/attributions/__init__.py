"""Attribution methods: what source tokens count for predictions, one file each."""
