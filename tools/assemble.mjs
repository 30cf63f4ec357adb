// Writes packages/wire/src/json/string-end-module.ts from string-end.wat in the same folder, with the WebAssembly
// Binary Toolkit, which npm downloads. packages/wire/src/json/string-end-finder.slow.test.ts compares the hash in it.
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../packages/wire/src/json/', import.meta.url))
const source = join(folder, 'string-end.wat')
const temporary = mkdtempSync(join(tmpdir(), 'sluice-assemble-'))
try {
  const target = join(temporary, 'module.wasm')
  execFileSync('npx', ['--yes', '--package=wabt@1.0.39', 'wat2wasm', source, `--output=${target}`])
  const lines = readFileSync(target)
    .toString('base64')
    .match(/.{1,96}/g)
  writeFileSync(
    join(folder, 'string-end-module.ts'),
    `/** Hash of string-end.wat, of which \`node tools/assemble.mjs\` made the module. */
export const SOURCE_SHA256 = '${hash('sha256', readFileSync(source))}'

/** The module in base64. */
export const STRING_END_MODULE =
${lines.map((line) => `  '${line}'`).join(' +\n')}
`,
  )
} finally {
  rmSync(temporary, { recursive: true })
}
