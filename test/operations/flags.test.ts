import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { FLAGS } from '../../bin/flags.mjs'
import { COLLECTOR_FLAGS, collectorFlags } from '../../src/gateway/v8-flags.ts'
import { OLD_NODE } from '../fixtures/old-node.ts'
import { family } from './process-family.ts'
import { discard, eventually, type Program, readyProgram, runProgram } from './program.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }

/** The command of the image, run in this folder. */
function entryOfContainer(): string[] {
  const file = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
  const words = ['ENTRYPOINT', 'CMD'].flatMap(
    (name) => JSON.parse(new RegExp(`^${name} (.+)$`, 'm').exec(file)?.[1] ?? '[]') as string[],
  )
  return words.map((word) => word.replace('/app/', `${ROOT}/`))
}

/** A folder in which the program is installed, with the links that npm makes. */
function installed(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-installed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "name": "site" }')
  symlinkSync(ROOT, join(folder, 'node_modules/sluice'))
  symlinkSync('../sluice/bin/sluice.mjs', join(folder, 'node_modules/.bin/sluice'))
  return folder
}

/** The size of the nursery that the flags set. */
const NURSERY_BYTES = 32 * 2 ** 20
const BIN = join(ROOT, 'bin/sluice.mjs')
const WAYS: readonly (readonly [name: string, command: readonly string[]])[] = [
  ['npm start', ['npm', 'start']],
  ['the program itself', [BIN, 'start']],
  ['npx', ['npx', '--offline', 'sluice', 'start']],
  ['the container', entryOfContainer()],
  ...(OLD_NODE === undefined ? [] : [['an older Node', [OLD_NODE, BIN, 'start']] as const]),
]

describe.each(WAYS)('flags of the process, started by %s', (name, command) => {
  test('the process that serves calls runs with the Node.js flags that the program sets', async () => {
    const { pid } = await readyProgram({
      command,
      config: {},
      group: true,
      ...(name === 'npx' && { cwd: installed() }),
      // PATH begins with the folder of this test's Node.js.
      env: { PATH: `${dirname(process.execPath)}:${process.env['PATH']}` },
    })
    const server = family(pid).at(-1)
    const given = readFileSync(`/proc/${server}/cmdline`, 'utf8').split('\0')
    expect(given.slice(1, 1 + FLAGS.length)).toEqual(FLAGS)
  })
})

/** Kilobytes of code that the system may keep on large pages: mapped without a file, and with that advice. */
function advisedCode(pid: number): number {
  const mappings = readFileSync(`/proc/${pid}/smaps`, 'utf8').split(/\n(?=[0-9a-f]+-)/)
  const advised = mappings.filter(
    (text) => /^\S+ r-xp 0+ 00:00 0 *\n/.test(text) && /^VmFlags:.* hg/m.test(text),
  )
  return advised.reduce((sum, text) => sum + Number(/^Size: +(\d+) kB/m.exec(text)?.[1]), 0)
}

/** Repeatedly prints the heap of each thread and the nursery of the main thread. */
const OBSERVER = `
  import { getHeapSpaceStatistics } from 'node:v8'
  const print = (name, bytes) => console.log(JSON.stringify({ heap: name, bytes }))
  process.on('worker', (thread) => setInterval(async () => {
    // A thread may have ended.
    const heap = await thread.getHeapStatistics().catch(() => undefined)
    if (heap) print(thread.threadName, heap.total_heap_size)
    print('nursery', getHeapSpaceStatistics().find((one) => one.space_name === 'new_space').space_size)
  }, 100).unref())`

/** Started by node without the flags, but with the observer. */
let observed: Program
beforeAll(async () => {
  const observer = `--import=data:text/javascript,${encodeURIComponent(OBSERVER)}`
  observed = await runProgram({ command: [process.execPath, observer, BIN, 'start'], config: {} })
  await observed.ready()
})
afterAll(() => discard(observed))

test('the process that serves calls runs with the Node.js flags that the program sets, started by node without the flags', () => {
  const given = readFileSync(`/proc/${observed.pid}/cmdline`, 'utf8').split('\0')
  expect(given.slice(1, 1 + FLAGS.length)).toEqual(FLAGS)
})

const LARGE_PAGES = '/sys/kernel/mm/transparent_hugepage/enabled'
const hasLargePages = existsSync(LARGE_PAGES) && !readFileSync(LARGE_PAGES, 'utf8').includes('[never]')
if (!hasLargePages) console.info('large pages are left out: this system has none')

test.skipIf(!hasLargePages)('the machine code of Node.js is mapped on large memory pages', () => {
  expect(advisedCode(observed.pid)).toBeGreaterThan(16 * 1024)
})

test("a Node.js flag that the operator sets replaces the program's flag of the same name, and the other flags stay", async () => {
  const own = ['--max-semi-space-size=48', '--stack-trace-limit=20']
  const { pid } = await readyProgram({
    command: [process.execPath, ...own, BIN, 'start'],
    config: {},
  })
  const given = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  expect(given.slice(1, 3 + FLAGS.length)).toEqual([...FLAGS, ...own])
})

test('the young generation of the heap starts at its full size in the main thread, and small in all other threads', async () => {
  const bytesOf = (name: string): number =>
    Number(observed.log().findLast(({ heap }) => heap === name)?.['bytes'] ?? Number.NaN)
  await eventually(() => bytesOf('nursery') >= NURSERY_BYTES, 'the main thread has its young generation')
  // A start leaves garbage for a while.
  await eventually(
    () => bytesOf('sluice database') < 1.5 * NURSERY_BYTES,
    'the thread of the database is smaller than a full young generation would make it',
  )
})

test('the V8 flags that the program sets after its start exist in this version of Node.js', () => {
  const known = spawnSync(process.execPath, ['--v8-options'], { timeout: 60_000 }).stdout.toString()
  // Node.js 24, and Node.js 26 from 26.1.
  expect(collectorFlags('13.6.233.17-node.49')).toContain('--no-separate-gc-phases')
  const later = collectorFlags('14.6.202.34-node.19')
  expect(later).toEqual([...COLLECTOR_FLAGS, '--external-memory-accounted-in-global-limit'])
  const late = collectorFlags(process.versions.v8)
  for (const flag of late) expect(known).toContain(`  ${flag.replace('--no-', '--').replace(/=.*/, '')} (`)
})

test('the Node.js flags that the program sets do not invalidate the compiled code that Node.js includes', () => {
  const tag = (flags: readonly string[]): string =>
    spawnSync(process.execPath, [...flags, '-p', 'v8.cachedDataVersionTag()'], {
      timeout: 60_000,
    }).stdout.toString()
  expect(tag([])).toMatch(/^\d+\n$/)
  expect(tag(FLAGS)).toBe(tag([]))
  expect(tag([COLLECTOR_FLAGS[0]])).not.toBe(tag([]))
})

test('with the Node.js flags that the program sets, __proto__ is a name like any other, in threads too', () => {
  const inThread =
    "new (require('node:worker_threads').Worker)(`console.log('__proto__' in {})`, { eval: true })"
  const print = (flags: readonly string[]): string =>
    spawnSync(process.execPath, [...flags, '-e', `console.log('__proto__' in {}); ${inThread}`], {
      timeout: 60_000,
    }).stdout.toString()
  expect(print([])).toBe('true\ntrue\n')
  expect(print(FLAGS)).toBe('false\nfalse\n')
})

test.skipIf(OLD_NODE === undefined)(
  'the program started by an older Node.js accepts the flags, and runs with the Node.js of its package',
  () => {
    const run = spawnSync(OLD_NODE ?? '', [...FLAGS, 'bin/sluice.mjs', '--version'], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
      timeout: 240_000,
    })
    expect(run.stderr.toString()).toBe('')
    expect(run.stdout.toString().trim()).toContain(version)
    expect(run.status).toBe(0)
  },
)
