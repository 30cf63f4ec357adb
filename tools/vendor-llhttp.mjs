// Writes llhttp.wasm of packages/http1/src/parser/vendor/llhttp from the package that origin.json in that
// folder names, after verifying the package's integrity and the module's hash. With `--check` it only
// compares.
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../packages/http1/src/parser/vendor/llhttp/', import.meta.url))
const origin = JSON.parse(readFileSync(join(folder, 'origin.json'), 'utf8'))
const target = join(folder, 'llhttp.wasm')

const module = moduleIn(publishedFile())
const sha256 = hash('sha256', module)
if (sha256 !== origin.sha256) fail(`the published module has the hash ${sha256}`)
if (!process.argv.includes('--check')) writeFileSync(target, module)
else if (!readFileSync(target).equals(module)) fail('llhttp.wasm differs from the published module')
console.log(
  `${origin.name} ${origin.version} of ${origin.package} ${origin.packageVersion}: sha256 ${sha256}`,
)

// Text of the file that contains the module, from the verified archive of the package.
function publishedFile() {
  const temporary = mkdtempSync(join(tmpdir(), 'sluice-vendor-'))
  try {
    const [{ filename }] = JSON.parse(
      npm(['pack', '--json', '--pack-destination', temporary, `${origin.package}@${origin.packageVersion}`]),
    )
    const archive = join(temporary, filename)
    const integrity = `sha512-${hash('sha512', readFileSync(archive), 'base64')}`
    if (integrity !== origin.packageIntegrity) fail(`the package has the integrity ${integrity}`)
    return execFileSync('tar', ['-xzOf', archive, `package/${origin.packageFile}`], { encoding: 'utf8' })
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

// The package embeds the module in JavaScript, as Base64; only its text is read.
function moduleIn(text) {
  const base64 = /'([A-Za-z0-9+/]{1000,}={0,2})'/.exec(text)?.[1]
  if (!base64) fail('the file of the package holds no module')
  return Buffer.from(base64, 'base64')
}

// Runs the npm that runs this script, or the one on the path.
function npm(args) {
  const path = process.env['npm_execpath']
  return path
    ? execFileSync(process.execPath, [path, ...args], { encoding: 'utf8' })
    : execFileSync('npm', args, { encoding: 'utf8' })
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
