import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { freePort, statusOn } from '../test/equipment/port.ts'

const { values: options } = parseArgs({
  options: { check: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
})
const ROUNDS = 11
const LIMIT = 'from "npm start" to the first answer, over a bare node:http server that npm starts'
const REPOSITORY = fileURLToPath(new URL('..', import.meta.url))
/** Does nothing but listen. */
const BARE = `import { createServer } from 'node:http'
createServer((_, response) => response.end('ok')).listen(process.env.PORT)
`

interface Candidate {
  readonly command: readonly string[]
  readonly folder: string
  readonly path: string
}

/** Both as they are started by npm, which alone takes most of the time, and without it. */
function candidates(
  bareFolder: string,
): Readonly<Record<'npm' | 'node', readonly [bare: Candidate, gateway: Candidate]>> {
  const gateway = { folder: REPOSITORY, path: '/readyz' }
  const bare = { folder: bareFolder, path: '/' }
  const { execPath } = process
  return {
    npm: [
      { ...bare, command: ['npm', 'start'] },
      { ...gateway, command: ['npm', 'start'] },
    ],
    node: [
      { ...bare, command: [execPath, 'bare.mjs'] },
      { ...gateway, command: [execPath, 'bin/sluice.mjs', 'start'] },
    ],
  }
}

/** Milliseconds from the command to the first answer with 200. Each start finds the data of the one before. */
async function firstAnswer({ command, folder, path }: Candidate, dataDir: string): Promise<number> {
  const port = await freePort()
  const [file = '', ...args] = command
  const started = performance.now()
  const child = spawn(file, args, {
    cwd: folder,
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, PORT: String(port), DATA_DIR: dataDir, LOG_LEVEL: 'silent' },
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  try {
    while ((await statusOn(port, path)) !== 200) {
      if (child.exitCode !== null) throw new Error(`${command.join(' ')} ended with ${child.exitCode}`)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    return performance.now() - started
  } finally {
    end(child)
    await ended
  }
}

// The whole group: npm, and what it started.
function end(child: ChildProcess): void {
  try {
    process.kill(-(child.pid ?? 0), 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const dataDir = join(folder, 'data')
  writeFileSync(join(folder, 'bare.mjs'), BARE)
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'bare', scripts: { start: 'exec node bare.mjs' } }),
  )
  try {
    const { npm, node } = candidates(folder)
    // The first start makes the database; it is measured like no other.
    const first = await firstAnswer(npm[1], dataDir)
    const found = { npm: await compared(npm, dataDir), node: await compared(node, dataDir), first }
    const limits = JSON.parse(readFileSync(new URL('./limits.json', import.meta.url), 'utf8')) as Record<
      string,
      number
    >
    const limit = limits[LIMIT] ?? 0
    if (options.json) console.log(JSON.stringify({ name: LIMIT, ...found, limit }, null, 2))
    else {
      const { bare, gateway, ratio } = found.node
      console.log(
        `without npm: bare ${bare.toFixed(0)} ms, gateway ${gateway.toFixed(0)} ms, ratio ${ratio.toFixed(2)}`,
      )
      console.log(
        `with npm: bare ${found.npm.bare.toFixed(0)} ms, gateway ${found.npm.gateway.toFixed(0)} ms; the very first ${first.toFixed(0)} ms`,
      )
      console.log(`ratio ${found.npm.ratio.toFixed(2)} (limit ${limit}): ${LIMIT}`)
    }
    return options.check && found.npm.ratio > limit ? 1 : 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Compared {
  /** Medians, in milliseconds. */
  readonly bare: number
  readonly gateway: number
  readonly ratio: number
}

/** Starts one after the other, round by round, so that a neighbour's load meets both. */
async function compared(
  [bare, gateway]: readonly [Candidate, Candidate],
  dataDir: string,
): Promise<Compared> {
  const times: { bare: number[]; gateway: number[] } = { bare: [], gateway: [] }
  for (let round = 0; round < ROUNDS; round++) {
    times.bare.push(await firstAnswer(bare, dataDir))
    times.gateway.push(await firstAnswer(gateway, dataDir))
  }
  const found = { bare: median(times.bare), gateway: median(times.gateway) }
  return { ...found, ratio: found.gateway / found.bare }
}

process.exitCode = await main()
