// Dependencies that the package for npm contains, instead of having npm install them: they need a newer Node than npm
// may be run with, and npm would warn of each (EBADENGINE), although the commands bring a Node of their own.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Names of dependencies, or their scope. `test/repository/package-engines.test.ts` checks what is left. */
const BUNDLED = /^(?:@opentelemetry\/(?!api$).*|chokidar|commander|cookie|file-type|kysely|undici)$/

/** Folders with vendored parts of other packages, each with its origin and its licence. */
export const VENDORED = [
  'packages/http1/src/parser/vendor/llhttp',
  'packages/screen/src/automaton/vendor/re2js',
]

/** The Node versions with which the package can be installed; the commands bring the one that they need. */
const INSTALLABLE = '>=20'

/** The package.json of the package: without the dependencies that it contains. */
export function packedManifest(manifest) {
  const dependencies = Object.entries(manifest.dependencies).filter(([name]) => !BUNDLED.test(name))
  return {
    ...manifest,
    engines: { node: INSTALLABLE },
    dependencies: Object.fromEntries(dependencies),
  }
}

/**
 * The packages that a package contains: those dependencies, and what they need in turn that npm does not install for
 * others. By name, with the folders in the lock file.
 */
export function bundledPackages(root) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const found = new Map()
  const visit = (name, from) => {
    if (name in dependencies && !BUNDLED.test(name)) return
    const folder = folderOf(packages, name, from)
    if (folder === undefined || found.get(name)?.includes(folder)) return
    found.set(name, [...(found.get(name) ?? []), folder])
    for (const needed of Object.keys(packages[folder].dependencies ?? {})) visit(needed, folder)
  }
  for (const name of Object.keys(dependencies)) if (BUNDLED.test(name)) visit(name, '')
  return found
}

// Node looks for a package in the folder of the one that needs it, then further up.
function folderOf(packages, name, from) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('node_modules/') - 1))) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    if (packages[path]) return path
    if (folder === '') return undefined
  }
}
