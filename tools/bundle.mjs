// Bundles the program: hundreds of modules become a few files, with which a start takes a third of the CPU
// time. The files stand where the package has them, so that paths from a module's own URL hold.
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'

// Files of src that are started by their URL: the command, and threads.
const ENTRIES = [
  'src/cli/index.ts',
  'src/store/sqlite/worker.ts',
  'src/store/sqlite/backup-worker.ts',
  'src/config/reading-worker.ts',
  'src/relay/local-count-worker.ts',
  'src/relay/recording-length-worker.ts',
]

/**
 * Writes `dist/cli` below `root`, from the sources of a repository. Returns the paths of all files that are
 * in it. Bundles without plugins: hooks in JavaScript have deadlocked the bundler's threads on two cores.
 */
export async function bundle(root, packages, sources) {
  const cli = join(root, 'dist/cli')
  const bundler = await rolldown({
    cwd: sources,
    platform: 'node',
    // A package with machine code loads its file from its own folder.
    external: packages === 'linked' ? /^(?!@sluice\/)[^./\0]/ : /^@node-rs\/|^koffi$|^pg-native$/,
    input: ENTRIES,
    logLevel: 'silent',
    // Nothing is removed: a call whose result is not used may be there for what it throws.
    treeshake: false,
  })
  try {
    const { output } = await bundler.write({
      dir: cli,
      format: 'esm',
      minify: false,
      // Stack traces name files and lines of the sources, whose text is left out: a start reads the maps.
      sourcemap: true,
      sourcemapExcludeSources: true,
      entryFileNames: '[name].js',
      chunkFileNames: '[name]-[hash].js',
    })
    // The parser's machine code, which packages/http1/src/parser/llhttp.ts reads beside itself.
    cpSync(join(sources, 'packages/http1/src/parser/vendor'), join(cli, 'vendor'), { recursive: true })
    // The SQL of the bank, which src/store/postgres/install-bank.ts reads likewise.
    const bank = join(sources, 'src/store/postgres/bank')
    cpSync(bank, join(cli, 'bank'), { recursive: true })
    const modules = output.flatMap((chunk) => ('moduleIds' in chunk ? chunk.moduleIds : []))
    return [...modules, ...readdirSync(bank).map((file) => join(bank, file))]
  } finally {
    await bundler.close()
  }
}
