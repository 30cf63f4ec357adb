import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { type Patch, patchedTexts } from './patch.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
/** Files of src that are started by their URL: the command, and threads. */
const ENTRIES = [
  'src/cli/index.ts',
  'src/store/sqlite/worker.ts',
  'src/store/sqlite/backup-worker.ts',
  'src/relay/local-count-worker.ts',
  'src/relay/recording-length-worker.ts',
]
/** Data file that src/http1/llhttp.ts reads beside itself. */
const PARSER = 'vendor/llhttp/llhttp.wasm'

/** Source of packages: the bundle, which starts faster, or node_modules, with which it is built faster. */
export type Packages = 'bundled' | 'linked'

/**
 * Writes the program into `root` with its sources in a few files: a process then starts in a third of the CPU
 * time that hundreds of modules take. The layout is that of the package: `bin`, `dist/cli`, `package.json`.
 */
export async function writeProgram(
  root: string,
  packages: Packages,
  patches: readonly Patch[] = [],
): Promise<void> {
  const cli = join(root, 'dist/cli')
  mkdirSync(join(cli, 'vendor/llhttp'), { recursive: true })
  for (const part of ['bin', 'package.json'])
    cpSync(join(REPOSITORY, part), join(root, part), { recursive: true })
  cpSync(join(REPOSITORY, 'src/http1', PARSER), join(cli, PARSER))
  symlinkSync(join(REPOSITORY, 'node_modules'), join(root, 'node_modules'))
  const patched = patchedTexts(patches)
  const bundle = await rolldown({
    cwd: REPOSITORY,
    platform: 'node',
    // A package with machine code loads its file from its own folder.
    external: packages === 'linked' ? /^[^./\0]/ : /^@node-rs\/|^koffi$|^pg-native$/,
    input: ENTRIES,
    logLevel: 'silent',
    // Nothing is removed: a call whose result is not used may be there for what it throws.
    treeshake: false,
    plugins: [{ name: 'patches', load: (id) => patched.get(relative(REPOSITORY, id)) }],
  })
  try {
    await bundle.write({
      dir: cli,
      format: 'esm',
      minify: false,
      entryFileNames: '[name].js',
      chunkFileNames: '[name]-[hash].js',
    })
  } finally {
    await bundle.close()
  }
}
