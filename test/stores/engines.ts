import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { Client, DatabaseError } from 'pg'
import { inject, onTestFinished } from 'vitest'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { RowStore } from '../../src/store/store.ts'
import type { PostgresAnswer } from '../runner/postgres-process.ts'
import { newToken, newUser, preparedFile, SECRETS, temporaryFolder } from './rows.ts'

/** A database for one test, with access outside the store. */
export interface TestDatabase {
  /** A path or a URL. */
  readonly place: string
  readonly open: (secrets?: typeof SECRETS) => Promise<RowStore>
  /** Runs one statement; numeric columns are numbers. */
  readonly sql: (statement: string) => Promise<Readonly<Record<string, unknown>>[]>
}

/** Registers cleanup for the end of a test, or of all tests of a file. */
export type OnEnd = (cleanUp: () => Promise<void>) => void

/** How long a slow machine may take for what a database usually does at once. */
export const PATIENCE_MS = 60_000

/** A kind of database that the store runs on. */
export interface Engine {
  readonly name: 'SQLite' | 'PostgreSQL'
  /** Makes an empty database, deleted after the test unless `onEnd` is given. */
  database(onEnd?: OnEnd): Promise<TestDatabase>
  /**
   * Makes a database with schema and first rows, deleted after the test unless `onEnd` is given; faster than opening an
   * empty one. On PostgreSQL it may have another secret than that of the tests.
   */
  prepared(options?: { readonly secrets?: typeof SECRETS; readonly onEnd?: OnEnd }): Promise<TestDatabase>
}

const sqlite: Engine = {
  name: 'SQLite',
  database: () => Promise.resolve(databaseAt(join(temporaryFolder(), 'sluice.db'))),
  prepared: async () => databaseAt(await preparedFile()),
}

function databaseAt(place: string): TestDatabase {
  return {
    place,
    // On the calling thread, like `openedStore`.
    open: (secrets = SECRETS) => openSqliteStore({ path: place, secrets, onCallingThread: true }),
    sql(statement) {
      const file = new DatabaseSync(place, { timeout: 5000 })
      try {
        return Promise.resolve(file.prepare(statement).all())
      } finally {
        file.close()
      }
    },
  }
}

function postgres(server: string): Engine {
  const placeOf = (name: string): string => {
    const url = new URL(server)
    url.pathname = `/${name}`
    return url.href
  }
  const make = async (template?: string, onEnd: OnEnd = onTestFinished): Promise<TestDatabase> => {
    const name = `${inject('postgresPrefix')}test_${randomBytes(6).toString('hex')}`
    const source = template === undefined ? '' : ` template ${template}`
    // Copying files costs half of copying through the server's log.
    await withoutSessions(() => run(server, `create database ${name}${source} strategy file_copy`))
    onEnd(async () => void (await withoutSessions(() => run(server, `drop database ${name} with (force)`))))
    const place = placeOf(name)
    return {
      place,
      open: (secrets = SECRETS) => openPostgresStore({ url: place, secrets, timeoutMs: PATIENCE_MS }),
      sql: (statement) => run(place, statement),
    }
  }
  // One template of each secret for each test process; the end of the run deletes it.
  const makeTemplate = async (secrets: typeof SECRETS): Promise<string> => {
    const name = `${inject('postgresPrefix')}template_${randomBytes(6).toString('hex')}`
    await withoutSessions(() => run(server, `create database ${name}`))
    const store = await openPostgresStore({ url: placeOf(name), secrets, timeoutMs: PATIENCE_MS })
    await store.close()
    return name
  }
  const templates = new Map<typeof SECRETS, Promise<string>>()
  return {
    name: 'PostgreSQL',
    database: (onEnd) => make(undefined, onEnd),
    async prepared({ secrets = SECRETS, onEnd } = {}) {
      const template = templates.get(secrets) ?? makeTemplate(secrets)
      templates.set(secrets, template)
      return make(await template, onEnd)
    },
  }
}

/**
 * Repeats a statement for which no session may use a database, while one does: the server waits five seconds for sessions
 * that end, which is too short for a busy machine.
 */
export async function withoutSessions<Result>(statement: () => Promise<Result>): Promise<Result> {
  const IN_USE = '55006'
  const deadline = performance.now() + PATIENCE_MS
  for (;;)
    try {
      return await statement()
    } catch (error) {
      const mayEnd = error instanceof DatabaseError && error.code === IN_USE && performance.now() < deadline
      if (!mayEnd) throw error
    }
}

async function run(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const INT8 = 20
  const client = new Client({ connectionString: url })
  client.setTypeParser(INT8, Number)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows
  } finally {
    await client.end()
  }
}

/**
 * The engines for tests of the store. Without a PostgreSQL server its tests are skipped, which prints a line;
 * where results are counted (`CI=true`) they fail instead.
 */
async function enginesHere(): Promise<readonly Engine[]> {
  const answer = (await (await fetch(inject('postgresRequestUrl'))).json()) as PostgresAnswer
  if ('url' in answer) return [sqlite, postgres(answer.url)]
  if (process.env['CI'] !== 'true') return [sqlite]
  const missing = (): Promise<never> => Promise.reject(new Error(answer.reason))
  return [sqlite, { name: 'PostgreSQL', database: missing, prepared: missing }]
}

/** SQLite, and PostgreSQL where there is a server. */
export const ENGINES = await enginesHere()

/** An open store on a new database, closed after the test. */
export async function openedRows(engine: Engine): Promise<{ store: RowStore; database: TestDatabase }> {
  const database = await engine.prepared()
  const store = await database.open()
  onTestFinished(() => store.close())
  return { store, database }
}

/** An open store with one user and one token of that user. */
export async function rowsWithAccount(
  engine: Engine,
): Promise<{ store: RowStore; database: TestDatabase; userId: number; tokenId: number }> {
  const { store, database } = await openedRows(engine)
  const user = await store.write('createUser', newUser())
  const token = await store.write('createToken', newToken(user.id))
  return { store, database, userId: user.id, tokenId: token.id }
}
