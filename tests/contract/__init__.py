"""What holds for every rule, probe, root and document, present and future: nothing here names one of ours."""
