// `npm run release -- --dry-run` checks everything that a release needs, and prints what it would publish. Without
// --dry-run it also makes the tag; pushing the tag starts .github/workflows/release.yml, which publishes.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { parse } from 'yaml'
import { releaseNotes } from './release-notes.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values: options } = parseArgs({
  options: {
    'dry-run': { type: 'boolean', default: false },
    // The tag that is released, if it is there already.
    tag: { type: 'string' },
    'pack-destination': { type: 'string' },
    // For tests, which run in a tree that is being worked on.
    'allow-changes': { type: 'boolean', default: false },
  },
})

/** Program 8 MB (half of it packages: docs/dependencies.md) with maps of 4 MB, console 4 MB, documentation 1 MB. */
const MAX_UNPACKED_BYTES = 18 * 2 ** 20
const MAX_UNMAPPED_BYTES = 512
/** Files that are not built from sources. */
const UNMAPPED = /\/(rolldown-runtime[^/]*|early-theme)\.js$/
/** Files without which a package does not work or may not be distributed. */
const NEEDED = [
  'package.json',
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
  'SECURITY.md',
  'gateway.example.yaml',
  'sbom.cdx.json',
  'bin/sluice.mjs',
  'dist/build.json',
  'dist/cli/main.js',
  'dist/cli/main.js.map',
  'dist/licenses.txt',
  'dist/cli/vendor/llhttp/llhttp.wasm',
  'dist/cli/vendor/re2js/LICENSE',
  'console/built/index.html',
]
/** Files for developers, which are in no package. */
const FOR_DEVELOPERS =
  /(^|\/)(src|test|tools|bench|e2e|packages|node_modules|\.github|\.ci|deploy|site)\/|\.(ts|tsx|test\.js)$|^(AGENTS|CONTRIBUTING)\.md|^docs\/(decisions|recipes|style|architecture)/

const problems = []
const problem = (text) => problems.push(text)
const read = (path) => readFileSync(join(root, path), 'utf8')
const json = (path) => JSON.parse(read(path))
const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()

const manifest = json('package.json')
const { version } = manifest
const tag = `v${version}`
const commit = git('rev-parse', 'HEAD')

checkVersions()
checkChangelog()
checkDependencies()
checkTree()
checkArchive()
checkChart()
const folder = options['pack-destination'] ?? mkdtempSync(join(tmpdir(), 'sluice-release-'))
try {
  const pack = packed(resolve(folder))
  printPlan(pack)
} finally {
  if (options['pack-destination'] === undefined) rmSync(folder, { recursive: true, force: true })
}

if (problems.length > 0) {
  console.error(`\nNot ready to be released:\n${problems.map((text) => `  - ${text}`).join('\n')}`)
  process.exit(1)
}
if (options['dry-run']) console.log('\nReady. Nothing was published.')
else {
  git('tag', '--annotate', tag, '--message', `Version ${version}`)
  console.log(`\nThe tag ${tag} was made. "git push origin ${tag}" publishes it.`)
}

function checkVersions() {
  if (!/^\d+\.\d+\.\d+$/.test(version)) problem(`package.json: "${version}" is not a version`)
  const lock = json('package-lock.json')
  const stated = [
    ['package-lock.json', lock.version],
    ['package-lock.json, packages', lock.packages[''].version],
    ...readdirSync(join(root, 'packages')).map((name) => [
      `packages/${name}/package.json`,
      json(`packages/${name}/package.json`).version,
    ]),
  ]
  for (const [where, other] of stated)
    if (other !== version) problem(`${where}: the version is ${other}, not ${version}`)
  if (options.tag !== undefined && options.tag !== tag) problem(`the tag is ${options.tag}, not ${tag}`)
}

function checkChangelog() {
  const notes = releaseNotes(version)
  if (notes === undefined) problem(`CHANGELOG.md has no part "## ${version}"`)
  else if (!/^### Known limits$/m.test(notes)) problem(`CHANGELOG.md: ${version} has no "Known limits"`)
  const first = /^## (.*)$/m.exec(read('CHANGELOG.md'))?.[1]
  if (first !== version) problem(`CHANGELOG.md begins with "${first}", not with ${version}`)
}

function checkDependencies() {
  if (/"resolved": "https?:/.test(read('package-lock.json'))) problem('package-lock.json names a registry')
  const all = { ...manifest.dependencies, ...manifest.optionalDependencies, ...manifest.devDependencies }
  // A package may be installed under another name: `npm:NAME@VERSION`.
  for (const [name, wanted] of Object.entries(all))
    if (!/^(?:npm:[\w@./-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(wanted))
      problem(`package.json: ${name} is not exact (${wanted})`)
}

function checkTree() {
  if (!options['allow-changes'] && git('status', '--porcelain') !== '')
    problem('the working tree has changes that are not committed')
  const tagged = git('tag', '--list', tag) && git('rev-parse', `${tag}^{commit}`)
  if (tagged && tagged !== commit) problem(`the tag ${tag} is at another commit (${tagged})`)
}

// The data of this version, which later versions have to upgrade.
function checkArchive() {
  if (!existsSync(join(root, `test/releases/${version}.tar.gz`)))
    problem(`test/releases/${version}.tar.gz is missing: node test/release/make-release-data.ts`)
}

function checkChart() {
  const chart = parse(read('deploy/helm/Chart.yaml'))
  for (const name of ['version', 'appVersion'])
    if (chart[name] !== version) problem(`deploy/helm/Chart.yaml: ${name} is ${chart[name]}, not ${version}`)
  const helm = spawnSync('helm', ['lint', '--strict', join(root, 'deploy/helm')], { encoding: 'utf8' })
  if (helm.error) console.log('The chart was not checked: helm is not installed.')
  else if (helm.status !== 0) problem(`helm lint: ${helm.stdout}${helm.stderr}`)
}

// Packs the package and checks its files.
function packed(destination) {
  const env = { ...process.env, npm_config_loglevel: 'error' }
  const out = execFileSync('npm', ['pack', '--json', '--pack-destination', destination], {
    cwd: root,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 64 * 2 ** 20,
  })
  // Scripts of the package print before.
  const listed = JSON.parse(out.slice(out.search(/^[[{]$/m)))
  const pack = Array.isArray(listed) ? listed[0] : Object.values(listed)[0]
  const files = new Map(pack.files.map(({ path, size }) => [path, size]))
  for (const path of NEEDED) if (!files.has(path)) problem(`the package lacks ${path}`)
  for (const path of files.keys()) if (FOR_DEVELOPERS.test(path)) problem(`the package has ${path}`)
  // Small files only import and export what others have.
  for (const [path, size] of files)
    if (
      /^(dist|console)\/.*\.js$/.test(path) &&
      size > MAX_UNMAPPED_BYTES &&
      !UNMAPPED.test(path) &&
      !files.has(`${path}.map`)
    )
      problem(`the package has no source map of ${path}`)
  if (pack.unpackedSize > MAX_UNPACKED_BYTES)
    problem(
      `the package takes ${megabytes(pack.unpackedSize)} unpacked: more than ${megabytes(MAX_UNPACKED_BYTES)}`,
    )
  const built = json('dist/build.json').commit
  if (!options['allow-changes'] && !commit.startsWith(built))
    problem(`the package was built from ${built}, not from ${commit}`)
  const bill = json('sbom.cdx.json')
  if (bill.metadata.component.version !== version) problem('sbom.cdx.json is of another version')
  const file = join(destination, pack.filename)
  return { ...pack, file, packedSize: statSync(file).size, components: bill.components.length }
}

function printPlan(pack) {
  const owner = process.env.GITHUB_REPOSITORY?.toLowerCase() ?? 'OWNER/REPOSITORY'
  console.log(`
Version ${version}, commit ${commit}

npm      ${pack.name}@${pack.version}, ${pack.files.length} files, ${megabytes(pack.packedSize)} packed, ${megabytes(pack.unpackedSize)} unpacked
         ${pack.integrity}
         ${relative(process.cwd(), pack.file)}
         with provenance; ${Object.keys(manifest.dependencies).length} dependencies, ${pack.components} components in sbom.cdx.json
image    ghcr.io/${owner}:${version}, :${version.replace(/\.\d+$/, '')}, :latest
         linux/amd64, linux/arm64; with SBOM, provenance and a cosign signature
chart    oci://ghcr.io/${owner.split('/')[0]}/charts/sluice ${version}, signed
release  ${tag}, with the notes of CHANGELOG.md (${releaseNotes(version)?.split('\n').length ?? 0} lines) and the bill of materials
site     from docs/, when this commit is on main`)
}

function megabytes(bytes) {
  return `${(bytes / 2 ** 20).toFixed(1)} MB`
}
