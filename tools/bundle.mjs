// Bundles the program: hundreds of modules become a few files, so that a start takes a third of the CPU time.
// The files keep the places that they have in the package, so that paths relative to a module's own URL stay
// valid.
import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { bundledPackages, VENDORED } from './bundled-packages.mjs'

// Files of src that are started by URL: the command, threads, and the process that plans imports.
const ENTRIES = [
  'src/cli/main.ts',
  'src/store/sqlite/worker.ts',
  'src/store/sqlite/backup-worker.ts',
  'src/config/reading-worker.ts',
  'src/transfer/planning-worker.ts',
  'src/content/content-worker.ts',
  'src/call/token-counter-worker.ts',
  'src/features/media/recording-length-worker.ts',
  'src/features/equal-calls/answer-conversions-worker.ts',
]

// What is loaded together: each entry, the steps of a start, and the two steps of commands that use accounts.
const STEPS = [
  ...ENTRIES.map((entry) => [entry]),
  ['src/cli/start.ts'],
  ['src/cli/load-config.ts', 'src/gateway/main.ts'],
  ['src/gateway/serve.ts'],
  ['src/store/sqlite/migrate-connection.ts', 'src/store/sqlite/write-operations.ts'],
  ['src/config/environment.ts', 'src/gateway/control/open-command-backend.ts'],
  ['src/gateway/control/local-backend.ts'],
]

// The folder of this repository, whose lock file and packages are used for all sources.
const REPOSITORY = fileURLToPath(new URL('..', import.meta.url))

// Threads that report errors with their stack traces. bin/sluice.mjs does the same for the main thread. Node's
// `--enable-source-maps` would take 85 ms of a start for the thread of the database.
const TRACED = new Set(['worker', 'backup-worker', 'reading-worker'])
const SOURCE_POSITIONS = "import '../../bin/source-positions.mjs'"

/**
 * Writes `dist/cli` and `dist/build.json` below `root`, from the sources of a repository and of `others`, further programs.
 * Returns the paths of all files in it.
 * Bundles without plugins, because hooks in JavaScript have deadlocked the bundler's threads on two cores.
 * A `brief` program takes a third of the CPU time to write, which is more than a few starts lose.
 */
export async function bundle(root, packages, sources, { others = [], brief = false } = {}) {
  const cli = join(root, 'dist/cli')
  const contained = packages === 'linked' ? bundledPackages(REPOSITORY) : new Map()
  const bundler = await rolldown({
    cwd: sources,
    platform: 'node',
    // A package with machine code loads it from its own folder.
    external: packages === 'linked' ? installedBeside(contained) : /^@node-rs\/|^koffi$|^pg-native$/,
    input: [...ENTRIES, ...others],
    logLevel: 'silent',
    // Nothing is removed, because a call whose result is not used may be there for the errors that it throws.
    treeshake: false,
  })
  try {
    const groups = brief ? [] : groupsOf((await bundler.generate({ format: 'esm' })).output, sources)
    const { output } = await bundler.write({
      dir: cli,
      format: 'esm',
      minify: false,
      // Comments would be read and kept in memory with the code, which they make a sixth longer.
      comments: { legal: true, annotation: false, jsdoc: false },
      codeSplitting: { groups },
      banner: ({ isEntry, name }) => (isEntry && TRACED.has(name) ? SOURCE_POSITIONS : ''),
      // Stack traces name files and lines of the sources. The maps omit the source text, because a start
      // reads the maps.
      sourcemap: !brief,
      sourcemapExcludeSources: true,
      entryFileNames: '[name].js',
      chunkFileNames: '[name]-[hash].js',
    })
    // Licences and origins, and the parser's WebAssembly, which packages/http1/src/parser/llhttp.ts reads from here.
    for (const folder of VENDORED)
      cpSync(join(sources, folder), join(cli, 'vendor', basename(folder)), {
        recursive: true,
        filter: (file) => !/\.m?ts$|\.mjs$/.test(file),
      })
    // The SQL of the bank, which src/store/postgres/install-bank.ts reads from its own folder.
    const bank = join(sources, 'src/store/postgres/bank')
    cpSync(bank, join(cli, 'bank'), { recursive: true })
    writeFileSync(join(root, 'dist/build.json'), `${JSON.stringify({ commit: commitOf(sources) })}\n`)
    if (contained.size > 0) writeFileSync(join(root, 'dist/licenses.txt'), licencesOf(contained))
    const modules = output.flatMap((chunk) => ('moduleIds' in chunk ? chunk.moduleIds : []))
    return [...modules, ...readdirSync(bank).map((file) => join(bank, file))]
  } finally {
    await bundler.close()
  }
}

// Puts the modules that the same steps load into one file: each file that a start loads takes 0.3 ms. `output` has the
// files without groups. A step loads exactly the modules that it imports, because whatever imports a module of a
// group is loaded by the same steps or by fewer.
function groupsOf(output, sources) {
  const chunks = output.filter(({ type }) => type === 'chunk')
  const chunkOf = new Map(chunks.flatMap((chunk) => chunk.moduleIds.map((id) => [id, chunk])))
  const chunkNamed = new Map(chunks.map((chunk) => [chunk.fileName, chunk]))
  // Entries may wait for what they import, so nothing may be in a file with them.
  const entries = new Set(ENTRIES.map((entry) => join(sources, entry)))
  const stepsOf = new Map()
  for (const [step, roots] of STEPS.entries()) {
    const loaded = new Set(roots.map((root) => chunkOf.get(join(sources, root))))
    for (const { imports } of loaded)
      for (const name of imports) if (chunkNamed.has(name)) loaded.add(chunkNamed.get(name))
    for (const id of [...loaded].flatMap(({ moduleIds }) => moduleIds))
      if (!entries.has(id)) stepsOf.set(id, [...(stepsOf.get(id) ?? []), step])
  }
  const groups = Map.groupBy(stepsOf.keys(), (id) => stepsOf.get(id).join())
  return [...groups.values()].map((ids) => ({
    name: basename(ids[0]).replace(/\.\w+$/, ''),
    test: new RegExp(`^(?:${ids.map(RegExp.escape).join('|')})$`),
    // A group takes what its modules import along, unless a group of higher priority has it.
    priority: stepsOf.get(ids[0]).length,
  }))
}

// Matches modules of packages that npm installs beside this one. A name with `#` is internal to a package. An expression,
// because the bundler's threads wait for a function in JavaScript.
function installedBeside(contained) {
  const others = ['@sluice/.*', ...[...contained.keys()].map((name) => `${RegExp.escape(name)}(?:/.*)?`)]
  return new RegExp(`^(?!(?:${others.join('|')})$)(?:@[^/]+/)?[^./\\0@#][^/]*`)
}

// The licences of the packages that the package contains, which ask for this.
function licencesOf(contained) {
  const parts = [...contained].flatMap(([name, folders]) =>
    folders.map((folder) => {
      const path = join(REPOSITORY, folder)
      const { version, license } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
      const file = readdirSync(path).find((entry) => /^licen[cs]e/i.test(entry))
      const text = file === undefined ? `Licence: ${license}` : readFileSync(join(path, file), 'utf8').trim()
      return `${name} ${version} (${license})\n\n${text}\n`
    }),
  )
  return parts.join(`\n${'-'.repeat(80)}\n\n`)
}

// The commit that the sources are at, with `-dirty` if they were changed since. Where they are no clone, as
// in the build of an image, SLUICE_COMMIT states it.
function commitOf(sources) {
  if (process.env.SLUICE_COMMIT) return process.env.SLUICE_COMMIT
  const args = ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*']
  try {
    return execFileSync('git', args, { cwd: sources, encoding: 'utf8', stdio: 'pipe' }).trim()
  } catch {
    return 'unknown'
  }
}
