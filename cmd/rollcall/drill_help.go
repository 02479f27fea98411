package main

// drillHelp tells what the fields of the report are.
const drillHelp = `Ends with 0 when all is well, else with 1 and the problems in words. The names in the object of --json:

  submitted = invalid + duplicate + accepted
  accepted = stored + failed + cancelled + outstanding
  asked                      how --urls becomes what is submitted: lists with odd pages and lines that are left out; crawls
  lost                       URLs submitted, or pages brought by the vendor, that are not here
  doubled                    URLs that are here more than once
  wrong_content              stored with other bytes than the vendor's books have
  imbalance                  counters that don't add up, or differ from their rows or from the books
  stuck                      URLs, batches, rotations and webhooks that had not come right by --deadline
  kills, kills_asked         servers that were killed, and should have been
  recovery_seconds           from a kill until the next URL came home: in half of the cases, at most
  ready_seconds              from a kill until the process was ready again
  steps                      named steps (commits and vendor calls): compiled in or not, seen, died at, kills at them
  rotations                  secrets that the vendor changed
  refused_valid              deliveries refused though Rollcall has the secret that signed them
  refused_secret_lost        deliveries signed with a secret whose answer was lost: nobody could have accepted them
  refused_secret_killed      deliveries signed with a secret that was told to a process killed before it could store it
  secrets_killed             secrets that went so: a server was killed, or its database or disk struck, as they were made
  secrets_missing            secrets that are not here though nothing of that kind happened, or that a webhook has in the end
  charged_twice              URLs that the vendor charged more than once
  charged_twice_lost_answer  those of them that were called for again: an answer was lost while a clock had jumped, and then
                             looked for in vain
  charged_twice_counted      what Rollcall counts of them: all but those of jobs that it doesn't know
  charged_given_up           URLs that were charged once, by a job that was given up before it was found after a lost answer
  vendor_calls               calls that the vendor got, by what they asked
  by_net                     stored URLs by what woke their job
  sandbox                    the vendor's books: jobs, deliveries, and URLs by how they ended
  faults                     acts of the script by kind: kill, term and step end a server, at random or at a step;
                             pg_kill, pg_restart and pg_cut strike Postgres; disk and clock a server; vendor and
                             switches change the vendor; rotate asks for new secrets; repair is a webhook that was
                             repaired; end is the end of all
  errors_explained           errors logged that an act of the script brings about
  errors_unexplained         others
  misbehaved                 processes, pages and parts of the script that did not go as they were told to, kinds of acts among
                             them of which none was carried out; how many acts were left out, and why, is in notes
  leaks                      secrets looked for, where, and found
  seconds, seed              how long it took; what decides the script
  problems, notes            in words
  ok                         the verdict

Named steps need a program built with -tags drill, as make drill does it.`
