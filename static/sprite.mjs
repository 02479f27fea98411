// Builds one SVG sprite from the icons named in icons.txt.
// Usage: node sprite.mjs ICON_DIR NAMES_FILE > sprite.svg
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [dir, namesFile] = process.argv.slice(2);
const names = readFileSync(namesFile, "utf8").split("\n").filter(Boolean);

function symbol(name) {
  const source = readFileSync(join(dir, `${name}.svg`), "utf8");
  const inner = source
    .slice(source.indexOf("<svg"))
    .replace(/^<svg[^>]*>/, "")
    .replace(/<\/svg>\s*$/, "")
    .replace(/\s*\n\s*/g, "");
  return `<symbol id="${name}" viewBox="0 0 24 24">${inner}</symbol>`;
}

process.stdout.write(
  '<svg xmlns="http://www.w3.org/2000/svg" fill="none" stroke="currentColor" stroke-width="2" ' +
    'stroke-linecap="round" stroke-linejoin="round">\n' +
    names.map(symbol).join("\n") +
    "\n</svg>\n",
);
