"""An epoch at work: the trunk, its job, and the tasks that read ranges."""
