DROP TABLE result_versions, results, job_events, crawl_pages, job_items, items, jobs, rejected_lines, batches;
