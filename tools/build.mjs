// Builds dist/, the program in a few files: for a package, which contains no sources but its dependencies,
// or, as `npm ci` calls it with --for-clone, for this folder, where bin/sluice.mjs runs it instead of the
// sources as long as these are unchanged. Types are only removed here; `npm run lint` checks them. A
// start takes 340 ms from the bundle and 527 ms from sources. Files are compared by size and time, which
// takes 10 ms; hashing their contents takes 17 ms, and 100 ms if the system has not read them recently.
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = ['src', 'packages'].map((folder) => join(root, folder))
const isForClone = process.argv.includes('--for-clone')
// npm also runs `prepare` for a folder that it packs, after the build for the package.
const isPacking = ['pack', 'publish'].includes(process.env.npm_command ?? '')
const isPossible = existsSync(sources[0]) && existsSync(join(root, 'node_modules/rolldown'))

if (!isForClone || (isPossible && !isPacking)) {
  const { bundle } = await import('./bundle.mjs')
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  const modules = await bundle(root, isForClone ? 'bundled' : 'linked', root)
  if (isForClone) writeFileSync(join(root, 'dist/sources.json'), JSON.stringify(states(modules)))
}

// Sources by their paths from the root, with sizes and modification times, and the manifests that name the
// packages, which the build contains as well.
function states(modules) {
  const manifests = ['package.json', 'package-lock.json'].map((name) => join(root, name))
  const own = [
    ...modules.filter((path) => sources.some((folder) => path.startsWith(folder))),
    ...manifests.filter(existsSync),
  ]
  const read = own.map((path) => [relative(root, path), statSync(path)])
  return Object.fromEntries(read.map(([path, { size, mtimeMs }]) => [path, [size, mtimeMs]]))
}
