// Draw formulas: a line of JSON in, a line out. A mistake ends the process.
const katex = require(process.argv[2]);
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const [tex, displayMode] = JSON.parse(line);
  const drawn = katex.renderToString(tex, { displayMode, strict: false });
  console.log(JSON.stringify(drawn));
});
