import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { PostgresAnswer, PostgresOrder } from './postgres-process.ts'

/** A PostgreSQL server of the test run, in a separate process. */
export interface PostgresChild {
  readonly answer: PostgresAnswer
  /** Settles when the order is carried out; rejects if the process ended instead. */
  order(order: PostgresOrder): Promise<void>
  /** Ends the server, and removes its data. */
  stop(): Promise<void>
}

/** Starts a server: on that port of 127.0.0.1, or on a socket without a port. Its data is below `folder`. */
export async function startPostgresChild(port?: number, folder = tmpdir()): Promise<PostgresChild> {
  const program = fileURLToPath(new URL('postgres-process.ts', import.meta.url))
  const child = spawn(process.execPath, [program, ...(port === undefined ? [] : [String(port)])], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: folder },
  })
  const exit = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const next = async (): Promise<unknown> => (await Promise.race([once(lines, 'line'), exit]))[0]
  const said = await next()
  return {
    answer: typeof said === 'string' ? (JSON.parse(said) as PostgresAnswer) : { reason: 'it ended' },
    async order(order) {
      const done = next()
      child.stdin.write(`${order}\n`)
      if ((await done) !== 'done') throw new Error(`the process of PostgreSQL ended at: ${order}`)
    },
    async stop() {
      child.stdin.end()
      await exit
    },
  }
}
