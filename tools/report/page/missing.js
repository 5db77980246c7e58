// What is said where the profile has nothing to show, and how to get it.

// The profile does not say where arguments begin that have blanks, or what a shell would take.
const commandText = (data) =>
  (/[^\w./=:,+@% -]/.test(data.commands[0]) || !data.commands[0] ? "PROGRAM ARGUMENT..." : data.commands[0]);

// The program as it was run, after assay and further options.
function HowTo({ data, text, options, commands }) {
  const lines = commands || [`assay ${options} -- ${commandText(data)}`];
  return html`<p class="soft">${text}${commands ? "" : html` <code>${options}</code>`}:</p>
    <pre class="command">${lines.join("\n")}</pre>`;
}

// By view: why it is empty, and what makes it full.
const MISSING = {
  source: () => ({ text: "The profile counts nothing, so that there are no lines to show. Profile a program that executes something",
                   options: "--plugin=cache" }),
  flame: () => ({ text: "No event was counted by calling context, and no function was inlined. Profile with",
                  options: "--plugin=cache --contexts" }),
  calls: () => ({ text: "Nothing says who calls whom. Profile with", options: "--plugin=cache --contexts" }),
  groups: () => ({ text: "Nothing says which variables, blocks of the heap, types and members the counts are of. Profile with",
                   options: "--plugin=cache --objects --types" }),
  heap: () => ({ text: "The run did not follow the blocks of the heap. Profile with", options: "--plugin=cache --objects" }),
  threads: () => ({ text: "Nothing says which threads the counts are of. Profile with", options: "--plugin=cache --threads" }),
  lines: () => ({ text: "Nothing says how much was used of what was fetched into the cache. Profile with",
                  options: "--plugin=used_bytes" }),
  values: () => ({ text: "The profile has no values of instructions. Profile with", options: "--plugin=classic" }),
  plots: () => ({ text: "No profiler has written a series, such as the misses of caches by their size. Profile with",
                  options: "--plugin=reuse,working_set" }),
  phases: (data) => ({ text: "Phases are in files of their own, which the bbv profiler and assay simpoint write",
    commands: [`assay --plugin=bbv --bb-out-file=bb.out -- ${commandText(data)}`, "assay simpoint bb.out",
               `assay report --block-vectors=bb.out ${data.files[0]}`] }),
};

// Views that only one profile can have.
const OF_ONE = ["calls", "groups", "heap", "threads"];

function Missing({ data, tab, title }) {
  const isDifference = data.old.length > 0 && OF_ONE.includes(tab);
  return html`<section class="panel"><h2>${title}: not in this report</h2>
    ${isDifference
      ? html`<${HowTo} data=${data} text="This view is of one profile, and the report shows how two differ. Look at each by itself"
          commands=${[...data.old.slice(0, 1), ...data.files.slice(0, 1)].map((file) => `assay report ${file}`)} />`
      : html`<${HowTo} data=${data} ...${MISSING[tab](data)} />`}
    ${!isDifference && tab === "threads" && html`<p class="soft">The processes of a run are here if the report is made
      of its index, which a run of several processes writes beside its first file:</p>
      <pre class="command">assay report index.assay.out.PID</pre>`}
  </section>`;
}
