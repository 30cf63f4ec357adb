// Writes what a package depends on at run time, from the lock file alone: sbom.cdx.json, in CycloneDX, as npm
// makes it.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const { name, version } = read('package.json')
const bill = JSON.parse(
  npm(['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--offline', '--include', 'dev']),
)

// npm calls the package by the name of the folder that it lies in.
Object.assign(bill.metadata.component, { type: 'application', name, version })

// npm's own "--omit dev" (11.19) leaves out, too, what is needed at run time and by a tool of the
// development.
const used = new Set(
  Object.entries(read('package-lock.json').packages)
    .filter(([path, { dev }]) => path !== '' && !dev)
    .map(([path, locked]) => `${path.split('node_modules/').pop()}@${locked.version}`),
)
bill.components = bill.components.filter((component) => used.has(`${component.name}@${component.version}`))
const refs = new Set([bill.metadata.component, ...bill.components].map((component) => component['bom-ref']))
bill.dependencies = bill.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }))

for (const component of bill.components) {
  // All that is left is needed where it is installed; how npm came to it is of no use to others.
  component.properties = component.properties.filter((property) => !property.name.endsWith(':development'))
  // Where a registry keeps a package is not for others to know; the hash says what it is.
  component.externalReferences = component.externalReferences.filter(({ type }) => type !== 'distribution')
}
writeFileSync(join(root, 'sbom.cdx.json'), `${JSON.stringify(bill, undefined, 2)}\n`)

function read(file) {
  return JSON.parse(readFileSync(join(root, file), 'utf8'))
}

// The npm that runs this, where one does.
function npm(args) {
  const path = process.env['npm_execpath']
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 64 * 2 ** 20 }
  return path ? execFileSync(process.execPath, [path, ...args], options) : execFileSync('npm', args, options)
}
