import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
/** Files of src that are started by their URL: the command, and threads. */
const ENTRIES = [
  'src/cli/index.ts',
  'src/store/sqlite/worker.ts',
  'src/store/sqlite/backup-worker.ts',
  'src/config/reading-worker.ts',
  'src/relay/local-count-worker.ts',
  'src/relay/recording-length-worker.ts',
]
/** Limit of the bundler: what a test file awaits as it is imported has no other. */
const MAX_BUNDLING_MS = 240_000
/** Data file that src/http1/llhttp.ts reads beside itself. */
const PARSER = 'vendor/llhttp/llhttp.wasm'

/** Source of packages: the bundle, which starts faster, or node_modules, with which it is built faster. */
export type Packages = 'bundled' | 'linked'

/**
 * Writes the program into `root` with the sources of a folder in a few files: a process then starts in a
 * third of the CPU time that hundreds of modules take. The layout is that of the package: `bin`, `dist/cli`,
 * `package.json`.
 */
export async function writeProgram(root: string, packages: Packages, sources = REPOSITORY): Promise<void> {
  const cli = join(root, 'dist/cli')
  mkdirSync(join(cli, 'vendor/llhttp'), { recursive: true })
  for (const part of ['bin', 'package.json'])
    cpSync(join(REPOSITORY, part), join(root, part), { recursive: true })
  cpSync(join(REPOSITORY, 'src/http1', PARSER), join(cli, PARSER))
  symlinkSync(join(REPOSITORY, 'node_modules'), join(root, 'node_modules'))
  const timer = new AbortController()
  const late = sleep(MAX_BUNDLING_MS, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`the bundler has not ended in ${MAX_BUNDLING_MS / 1000} s`)
  })
  try {
    await Promise.race([bundle(cli, packages, sources), late])
  } finally {
    late.catch(() => {})
    timer.abort()
  }
}

/** Bundles without plugins: hooks in JavaScript have deadlocked the bundler's threads on two cores. */
async function bundle(folder: string, packages: Packages, sources: string): Promise<void> {
  await using bundler = await rolldown({
    cwd: sources,
    platform: 'node',
    // A package with machine code loads its file from its own folder.
    external: packages === 'linked' ? /^[^./\0]/ : /^@node-rs\/|^koffi$|^pg-native$/,
    input: ENTRIES,
    logLevel: 'silent',
    // Nothing is removed: a call whose result is not used may be there for what it throws.
    treeshake: false,
  })
  await bundler.write({
    dir: folder,
    format: 'esm',
    minify: false,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  })
}
