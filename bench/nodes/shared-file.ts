import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { Link } from '../../src/ipc/link.ts'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { BatchPort } from '../../src/store/sqlite/batch-port.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import { openOwnedDatabase, type OwnedDatabase } from '../../src/store/sqlite/owned-database.ts'
import { addAccount, holdOf, settledCall } from '../../test/stores/rows.ts'
import { cpuSeconds } from '../measuring/cpu-time.ts'

/**
 * Compares two ways in which several processes may write to one database file: one process owns it and the
 * others send requests over a local socket, or each opens the file. Prints the CPU time of all processes per
 * call (a hold and a settlement), and the calls per second.
 */
const SECRETS = deriveSecrets('a secret of a measurement')
const WRITERS = 2
const LANES = 32
const CALLS = 6_000
const WHO = { userId: 1, tokenId: 1 }

/** Measurements of one process. */
interface Seen {
  /** Commits that failed because the file was locked for too long. */
  readonly refused: number
  /** Milliseconds of each call, sorted. */
  readonly latencies: readonly number[]
}

/** Writes the calls of one process, a number of them at a time. */
async function writeCalls(mode: 'own' | 'ask', path: string, name: string): Promise<void> {
  const link = new Link(new Socket({ fd: 3 }))
  const thread = mode === 'ask' ? new BatchPort((batch) => link.request('batch', batch)) : undefined
  const store = await openSqliteStore({ path, secrets: SECRETS, thread })
  let next = 0
  let refused = 0
  const latencies: number[] = []
  const lane = async (): Promise<void> => {
    while (next < CALLS) {
      const id = `${name} ${next++}`
      const sentMs = performance.now()
      for (;;) {
        try {
          await store.write('hold', holdOf(WHO, id))
          await store.write('settle', settledCall(WHO, id))
          latencies.push(performance.now() - sentMs)
          break
        } catch {
          refused += 1
        }
      }
    }
  }
  await link.request('begin')
  await Promise.all(Array.from({ length: LANES }, lane))
  await link.request('end', { refused, latencies: latencies.toSorted((a, b) => a - b) } satisfies Seen)
  process.exit()
}

async function measure(mode: 'own' | 'ask'): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-file-'))
  const path = join(folder, 'sluice.db')
  const first = await openSqliteStore({ path, secrets: SECRETS, onCallingThread: true })
  await addAccount(first)
  await first.close()
  const owner =
    mode === 'ask' ? await openOwnedDatabase({ path, secrets: SECRETS, announce: () => {} }) : undefined
  const begin = Promise.withResolvers<void>()
  const ends: Promise<Seen>[] = []
  const read = Promise.withResolvers<void>()
  let ready = 0
  for (let index = 0; index < WRITERS; index += 1) {
    const args = [...process.execArgv, fileURLToPath(import.meta.url), mode, path, `w${index}`]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'pipe'] })
    const link = new Link(child.stdio[3] as Socket)
    link.answer('batch', (batch: Parameters<OwnedDatabase['write']>[1]) => owner?.write(`w${index}`, batch))
    link.answer('begin', () => {
      ready += 1
      if (ready === WRITERS) begin.resolve()
      return begin.promise
    })
    ends.push(
      new Promise((resolve) =>
        link.answer('end', (seen: Seen) => {
          resolve(seen)
          return read.promise
        }),
      ),
    )
  }
  await begin.promise
  const [startMs, startCpu] = [performance.now(), cpuSeconds(process.pid)]
  const seen = await Promise.all(ends)
  const [ms, cpu] = [performance.now() - startMs, cpuSeconds(process.pid) - startCpu]
  read.resolve()
  const calls = WRITERS * CALLS
  const refused = seen.reduce((sum, one) => sum + one.refused, 0)
  const worst = Math.max(...seen.map(({ latencies }) => latencies[Math.floor(0.99 * CALLS)] ?? 0))
  console.log(
    `${mode === 'ask' ? 'one process owns the file' : 'each process opens it'}: ` +
      `${((cpu * 1e6) / calls).toFixed(0)} µs of CPU a call, ${((calls / ms) * 1000).toFixed(0)} calls a second, ` +
      `99 of 100 within ${worst.toFixed(1)} ms, ${refused} writes refused because the file was locked`,
  )
  await owner?.close()
  rmSync(folder, { recursive: true, force: true })
}

const [mode, path = '', name = ''] = process.argv.slice(2)
if (mode === 'own' || mode === 'ask') await writeCalls(mode, path, name)
else
  for (let round = 0; round < 3; round += 1) {
    await measure('ask')
    await measure('own')
  }
