// Writes compile.mjs of packages/screen/src/automaton/vendor/re2js: the parser and the compiler of the re2js that is
// installed, without its matchers. origin.json in that folder gets its version and hash. With `--check` it only
// compares.
import { hash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

/** The declarations that the gateway uses; re2js exports none of them. */
const NEEDED = ['Compiler', 'Inst', 'Parser', 'RE2Flags', 'Simplify']

/**
 * Names that are not followed to their declarations: `RE2JS` appears only in the text of an error, and `re` is
 * also the name of many variables.
 */
const UNCALLED = new Set(['RE2JS', 're'])

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, 'packages/screen/src/automaton/vendor/re2js')
const installed = join(root, 'node_modules/re2js')
const { name, version, license } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))

const text = withoutUnused(readFileSync(join(installed, 'build/index.js'), 'utf8'))
const origin = {
  name,
  version,
  license,
  purl: `pkg:npm/${name}@${version}`,
  repository: 'https://github.com/le0pard/re2js',
  packageIntegrity: packages['node_modules/re2js'].integrity,
  packageFile: 'build/index.js',
  sha256: hash('sha256', text),
}
const files = {
  'compile.mjs': text,
  'origin.json': `${JSON.stringify(origin, undefined, 2)}\n`,
  LICENSE: readFileSync(join(installed, 'LICENSE'), 'utf8'),
}
for (const [file, content] of Object.entries(files)) {
  const path = join(folder, file)
  if (!process.argv.includes('--check')) writeFileSync(path, content)
  else if (readFileSync(path, 'utf8') !== content) {
    console.error(`${file} is not what re2js ${version} has: run tools/vendor-re2js.mjs`)
    process.exit(1)
  }
}
console.log(`${name} ${version}: sha256 ${origin.sha256}`)

/** Keeps the top-level statements that `NEEDED` names, and those that they use in turn, in their order. */
function withoutUnused(source) {
  const parts = source.split(/^(?=(?:\/\*\*|var|const|function|export) ?)/m)
  const header = parts.shift()
  // A comment belongs to the statement after it.
  const statements = []
  let comment = ''
  for (const part of parts) {
    if (part.startsWith('/**') && !/\*\/\n\S/.test(part)) comment += part
    else {
      statements.push(comment + part)
      comment = ''
    }
  }
  const declared = statements.map((part) => /^(?:var|const|function) (\w+)/m.exec(part)?.[1])
  const code = statements.map((part) => part.replaceAll(/\/\*[^]*?\*\/|\/\/.*$/gm, ''))
  const kept = new Set()
  const open = [...NEEDED]
  for (let wanted = open.pop(); wanted !== undefined; wanted = open.pop()) {
    const at = declared.indexOf(wanted)
    if (at < 0) throw new Error(`re2js ${version} has no ${wanted}`)
    if (kept.has(at)) continue
    kept.add(at)
    for (const other of declared.filter((one) => !UNCALLED.has(one)))
      if (other !== undefined && new RegExp(`(?<![\\w.])${other}\\b`).test(code[at] ?? '')) open.push(other)
  }
  const used = statements.filter((_, at) => kept.has(at))
  return `${header}${used.join('')}export { ${NEEDED.join(', ')} };\n`
}
