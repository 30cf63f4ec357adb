import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const SOURCES = ['src/cli/main.ts', 'src/gateway/main.ts']

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-built-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A clone whose program prints what it is, and a build that does so too. */
function clone() {
  const folder = newFolder()
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  cpSync(join(REPOSITORY, 'bin'), join(folder, 'bin'), { recursive: true })
  write('package.json', '{"type":"module"}')
  for (const path of SOURCES) write(path, `console.log('sources')`)
  write('dist/cli/main.js', `console.log('built')`)
  for (const path of SOURCES) utimesSync(join(folder, path), 1_700_000_000.5, 1_700_000_000.5)
  const states = (size = `console.log('sources')`.length, seconds = 1_700_000_000.5): void =>
    write(
      'dist/sources.json',
      JSON.stringify(Object.fromEntries(SOURCES.map((path) => [path, [size, seconds * 1000]]))),
    )
  const run = (): string =>
    execFileSync(process.execPath, ['bin/sluice.mjs', '--version'], { cwd: folder, encoding: 'utf8' }).trim()
  return { folder, write, states, run }
}

describe('the program that a clone runs', () => {
  test('a Git clone runs its build as long as its sources are unchanged since the build', () => {
    const { states, run } = clone()
    states()
    expect(run()).toBe('built')
  })

  test('a Git clone without a build runs its sources', () => {
    expect(clone().run()).toBe('sources')
  })

  test.each<[string, (made: ReturnType<typeof clone>) => void]>([
    ['of another size', ({ states }) => states(7)],
    ['of another time', ({ states }) => states(undefined, 1_700_000_001)],
    [
      'not listed, as the list is broken',
      ({ write }) => write('dist/sources.json', '{"src/gateway/main.ts":'),
    ],
    ['gone', ({ folder }) => rmSync(join(folder, 'src/gateway/main.ts'))],
  ])('a Git clone runs its sources instead of its build once a source file is %s', (_, change) => {
    const made = clone()
    made.states()
    change(made)
    expect(made.run()).toBe('sources')
  })

  test('an installed package, which has no sources, runs its build', () => {
    const { folder, run } = clone()
    rmSync(join(folder, 'src'), { recursive: true })
    expect(run()).toBe('built')
  })
})

test('the build of a Git clone contains its packages, lists all source files, and names the commit', {
  timeout: 120_000,
}, () => {
  const folder = newFolder()
  for (const part of ['bin', 'src', 'packages', 'tools', 'package.json', 'package-lock.json'])
    cpSync(join(REPOSITORY, part), join(folder, part), { recursive: true })
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'))
  const node = (...args: readonly string[]): string =>
    execFileSync(process.execPath, args, {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  execFileSync(process.execPath, ['tools/build.mjs', '--for-clone'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, SLUICE_COMMIT: '0123456789ab' },
  })
  rmSync(join(folder, 'node_modules'))
  // The sources would fail, because their packages are missing.
  expect(node('bin/sluice.mjs', '--version')).toBe('0.1.0 (0123456789ab)\n')
  const list = readFileSync(join(folder, 'dist/sources.json'), 'utf8')
  for (const path of ['src/domain/price.ts', 'package-lock.json']) {
    // The list is changed, not the file, because a file's modification time cannot be restored to the
    // nanosecond.
    const states = { ...(JSON.parse(list) as object), [path]: [0, 0] }
    writeFileSync(join(folder, 'dist/sources.json'), JSON.stringify(states))
    expect(() => node('bin/sluice.mjs', '--version'), path).toThrow()
    expect(list).toContain(`"${path}":`)
  }
  expect(readdirSync(join(folder, 'dist'))).toEqual(['build.json', 'cli', 'sources.json'])
})

describe('stack traces of the built program', () => {
  const PRINTED = `process.getBuiltinModule('node:fs').writeSync(2, new Error('planted').stack); process.kill(process.pid, 'SIGKILL');`
  const PLACES = [
    ['on the main thread', 'src/cli/run-command.ts', `  const program = new Command('sluice')`],
    ['in the thread of the database', 'src/store/sqlite/worker.ts', 'if (parentPort)'],
  ] as const
  let copy: PatchedCopy
  beforeAll(async () => {
    const patches = PLACES.map(([, file, text]) => ({
      file,
      text,
      by: `if (process.env.PLANTED === '${file}') { ${PRINTED} } ${text}`,
    }))
    copy = await patchedProgram(patches, { brief: false })
  })
  afterAll(() => copy?.discard())

  test.each(PLACES)(
    'a stack trace of the built program names the TypeScript file and its line: %s',
    (_, file, text) => {
      const env = { ...process.env, PLANTED: file, DATA_DIR: join(copy.root, 'data'), PORT: '0' }
      const run = { cwd: copy.root, env, encoding: 'utf8', timeout: 60_000 } as const
      const { stderr } = spawnSync(process.execPath, ['bin/sluice.mjs', 'start'], run)
      const line = readFileSync(join(REPOSITORY, file), 'utf8').split(text)[0]?.split('\n').length
      expect(/Error: planted\s+at .*?((?:src|dist)\/[\w./-]+:\d+)/.exec(stderr)?.[1] ?? stderr).toBe(
        `${file}:${line}`,
      )
    },
  )
})
