import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values: options } = parseArgs({
  options: { check: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
})
const ROUNDS = 11
const LIMIT = 'from "npm start" to the first answer, over a bare node:http server that npm starts'
const REPOSITORY = fileURLToPath(new URL('..', import.meta.url))
/** The same way through npm, to a program that does nothing but listen. */
const BARE = `require('node:http').createServer((_, response) => response.end('ok')).listen(process.env.PORT)`

interface Candidate {
  readonly command: readonly string[]
  readonly path: string
}

const CANDIDATES: Readonly<Record<'bare' | 'gateway', Candidate>> = {
  bare: { command: ['npm', 'exec', '--no', '-c', `exec node -e "${BARE}"`], path: '/' },
  gateway: { command: ['npm', 'start'], path: '/readyz' },
}

/** Milliseconds from the command to the first answer with 200. Each start finds the data of the one before. */
async function firstAnswer({ command, path }: Candidate, dataDir: string): Promise<number> {
  const port = await freePort()
  const [file = '', ...args] = command
  const started = performance.now()
  const child = spawn(file, args, {
    cwd: REPOSITORY,
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, PORT: String(port), DATA_DIR: dataDir, LOG_LEVEL: 'silent' },
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  try {
    while (!(await answers(port, path))) {
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

function answers(port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = request({ port, host: '127.0.0.1', path, agent: false }, (reply) => {
      reply.resume()
      resolve(reply.statusCode === 200)
    })
    probe.on('error', () => resolve(false))
    probe.end()
  })
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

async function main(): Promise<number> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  try {
    // The first start makes the database; it is measured like no other.
    const first = await firstAnswer(CANDIDATES.gateway, dataDir)
    await firstAnswer(CANDIDATES.bare, dataDir)
    const bare: number[] = []
    const gateway: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      bare.push(await firstAnswer(CANDIDATES.bare, dataDir))
      gateway.push(await firstAnswer(CANDIDATES.gateway, dataDir))
    }
    const limits = JSON.parse(readFileSync(new URL('./limits.json', import.meta.url), 'utf8')) as Record<
      string,
      number
    >
    const limit = limits[LIMIT] ?? 0
    const found = {
      bare: median(bare),
      gateway: median(gateway),
      ratio: median(gateway) / median(bare),
      first,
    }
    if (options.json) console.log(JSON.stringify({ name: LIMIT, ...found, limit }, null, 2))
    else {
      console.log(
        `median: bare ${found.bare.toFixed(0)} ms, gateway ${found.gateway.toFixed(0)} ms (the very first ${first.toFixed(0)} ms)`,
      )
      console.log(`ratio ${found.ratio.toFixed(2)} (limit ${limit}): ${LIMIT}`)
    }
    return options.check && found.ratio > limit ? 1 : 0
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

process.exitCode = await main()
