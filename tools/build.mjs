// Builds dist/, the JavaScript of the package, from src/. A clone runs its sources and needs no build. Types
// are only removed here: `npm run typecheck` checks them.
import { execFileSync } from 'node:child_process'
import { cpSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

rmSync(join(root, 'dist'), { recursive: true, force: true })
compile()
copyDataFiles()

function compile() {
  const manifest = createRequire(import.meta.url).resolve('typescript/package.json')
  const { bin } = JSON.parse(readFileSync(manifest, 'utf8'))
  const tsc = join(dirname(manifest), bin.tsc)
  try {
    execFileSync(process.execPath, [tsc, '--project', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
  } catch {
    process.exit(1)
  }
}

// The sources read data files beside them at run time, so dist/ needs these too.
function copyDataFiles() {
  cpSync(join(root, 'src'), join(root, 'dist'), {
    recursive: true,
    filter: (path) =>
      !/\.(ts|md|snap)$/.test(path) && !/[\\/](__snapshots__|__fixtures__)([\\/]|$)/.test(path),
  })
}
