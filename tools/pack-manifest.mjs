// `npm pack` and `npm publish` call this before and after they read package.json: the package has another one than the
// repository (tools/bundled-packages.mjs). Where packing was interrupted, `git checkout package.json` restores it.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { packedManifest } from './bundled-packages.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const file = join(root, 'package.json')
const saved = join(root, 'package.json.unpacked')

if (process.argv.includes('--restore')) {
  if (existsSync(saved)) renameSync(saved, file)
} else {
  const text = readFileSync(file, 'utf8')
  writeFileSync(saved, text)
  writeFileSync(file, `${JSON.stringify(packedManifest(JSON.parse(text)), undefined, 2)}\n`)
}
