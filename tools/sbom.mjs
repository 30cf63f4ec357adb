// Writes sbom.cdx.json: the run-time dependencies in the lock file and what is vendored, in CycloneDX
// format.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { VENDORED } from './bundled-packages.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const { name, version } = read('package.json')
const bill = JSON.parse(
  npm(['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--offline', '--include', 'dev']),
)

// npm names the package after its folder.
Object.assign(bill.metadata.component, { type: 'application', name, version })

// npm's own "--omit dev" (11.19) omits packages needed both at run time and for development. The packages of
// this repository are part of the program.
const used = new Set(
  Object.entries(read('package-lock.json').packages)
    .filter(([path, { dev, link }]) => path.startsWith('node_modules/') && !dev && !link)
    .map(([path, locked]) => `${path.split('node_modules/').pop()}@${locked.version}`),
)
bill.components = bill.components.filter((component) => used.has(`${component.name}@${component.version}`))
const refs = new Set([bill.metadata.component, ...bill.components].map((component) => component['bom-ref']))
bill.dependencies = bill.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }))

for (const component of bill.components) {
  // Every component left is needed at run time, even if npm marks it as a development dependency.
  component.properties = component.properties.filter((property) => !property.name.endsWith(':development'))
  // The hash identifies a package; the address in a registry does not matter.
  component.externalReferences = component.externalReferences.filter(({ type }) => type !== 'distribution')
}

// Vendored parts are not in the lock file.
for (const folder of VENDORED) {
  const { name, version, license, purl, sha256 } = read(`${folder}/origin.json`)
  bill.components.push({
    'bom-ref': purl,
    type: 'library',
    name,
    version,
    purl,
    licenses: [{ license: { id: license } }],
    hashes: [{ alg: 'SHA-256', content: sha256 }],
  })
  bill.dependencies.find(({ ref }) => ref === bill.metadata.component['bom-ref']).dependsOn.push(purl)
  bill.dependencies.push({ ref: purl, dependsOn: [] })
}
writeFileSync(join(root, 'sbom.cdx.json'), `${JSON.stringify(bill, undefined, 2)}\n`)

function read(file) {
  return JSON.parse(readFileSync(join(root, file), 'utf8'))
}

// Runs the npm that runs this script, or the one on the path.
function npm(args) {
  const path = process.env['npm_execpath']
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 64 * 2 ** 20 }
  return path ? execFileSync(process.execPath, [path, ...args], options) : execFileSync('npm', args, options)
}
