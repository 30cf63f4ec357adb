import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { expect, test } from 'vitest'
import { COLLECTOR_FLAGS, RECENT_COLLECTOR_FLAGS } from '../../src/process/collector-flags.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const PROGRAM = readFileSync(join(ROOT, 'bin/sluice.mjs'), 'utf8')
const { scripts, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: { start: string; demo: string }
  version: string
}

const flagsIn = (text: string): string[] => text.match(/--[a-z0-9-]+(?:=\d+)?/g) ?? []
const FIRST_LINE = flagsIn(PROGRAM.split('\n', 1)[0] ?? '')

/** A Node that is older than the program requires. */
const OLD_NODE = ['/usr/bin/node', '/usr/local/bin/node'].find(
  (path) =>
    existsSync(path) &&
    /^v2[0-3]\./.test(spawnSync(path, ['--version'], { timeout: 60_000 }).stdout.toString()),
)

if (OLD_NODE === undefined)
  console.info('a Node that is too old is left out: there is none in /usr/bin or /usr/local/bin')

test('the program has the same flags however it is started: by its first line, by npm, by an older Node', () => {
  expect(FIRST_LINE.length).toBeGreaterThan(0)
  expect(flagsIn(scripts.start)).toEqual(FIRST_LINE)
  expect(flagsIn(scripts.demo)).toEqual(FIRST_LINE)
  expect(flagsIn(PROGRAM.match(/const FLAGS = \[[^\]]*\]/)?.[0] ?? '')).toEqual(FIRST_LINE)
})

test('the flags that the program sets once it has started are known to this Node', () => {
  const known = spawnSync(process.execPath, ['--v8-options'], { timeout: 60_000 }).stdout.toString()
  const late = [...COLLECTOR_FLAGS, ...RECENT_COLLECTOR_FLAGS]
  expect(late).toContain('--no-separate-gc-phases')
  for (const flag of late) expect(known).toContain(`  ${flag.replace('--no-', '--').replace(/=.*/, '')} (`)
})

test('the flags of a start leave the compiled code valid that Node brings along', () => {
  const tag = (flags: readonly string[]): string =>
    spawnSync(process.execPath, [...flags, '-p', 'v8.cachedDataVersionTag()'], {
      timeout: 60_000,
    }).stdout.toString()
  expect(tag([])).toMatch(/^\d+\n$/)
  expect(tag(FIRST_LINE)).toBe(tag([]))
  expect(tag([COLLECTOR_FLAGS[0]])).not.toBe(tag([]))
})

test.skipIf(OLD_NODE === undefined)('an older Node knows the flags, and finds the bundled Node', () => {
  const run = spawnSync(OLD_NODE ?? '', [...FIRST_LINE, 'bin/sluice.mjs', '--version'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
    timeout: 240_000,
  })
  expect(run.stderr.toString()).toBe('')
  expect(run.stdout.toString().trim()).toContain(version)
  expect(run.status).toBe(0)
})
