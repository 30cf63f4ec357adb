import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { patchedSources } from '../../../test/fixtures/patched-copy.ts'
import {
  copyOf,
  holdOf,
  makeTemplate,
  newToken,
  newUser,
  openedStore,
  SECRETS,
  temporaryFolder,
} from '../../../test/stores/rows.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { mapDatabaseError } from './failure.ts'
import { openSqliteStore } from './open.ts'

/** A closed database with 2,000 tokens. */
async function largeDatabase(): Promise<string> {
  template ??= makeTemplate('large', async (store) => {
    const { id } = await store.write('createUser', newUser())
    await Promise.all(
      Array.from({ length: 2000 }, (_, index) =>
        store.write('createToken', newToken(id, { name: `token ${index}`, key: `k${index}` })),
      ),
    )
  })
  return copyOf(await template)
}

let template: Promise<string> | undefined

/** Overwrites a page in the middle of the rows of a table. */
function damage(path: string, table: string): void {
  const file = new DatabaseSync(path, { readOnly: true })
  const { page } = file
    .prepare('SELECT max(pageno) AS page FROM dbstat WHERE name = ? AND pagetype = ?')
    .get(table, 'leaf') as { page: number }
  const { page_size: size } = file.prepare('PRAGMA page_size').get() as { page_size: number }
  file.close()
  writeSync(openSync(path, 'r+'), Buffer.alloc(size, 0xff), 0, size, (page - 1) * size)
}

async function refusal(path: string): Promise<string> {
  const error: unknown = await openSqliteStore({ path, secrets: SECRETS }).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(StoreUnavailable)
  return (error as Error).message
}

describe('a damaged database', () => {
  test('a database file whose beginning was overwritten is refused with its path and advice, and left unchanged', async () => {
    const path = await largeDatabase()
    const bytes = readFileSync(path)
    bytes.fill('oops', 0, 100)
    writeFileSync(path, bytes)
    expect(await refusal(path)).toMatch(/^the database \/.*sluice\.db is not a database.*backup in its place/)
    expect(readFileSync(path).equals(bytes)).toBe(true)
  })

  test('a database with a damaged page of the tokens table is refused after an unclean stop', async () => {
    const path = await largeDatabase()
    const store = await openedStore(path, 'own')
    await store.write('hold', holdOf({ userId: 1, tokenId: 1 }, 'a'))
    // Copies the files as a crash leaves them: the database and its log.
    const copy = join(temporaryFolder(), 'sluice.db')
    for (const end of ['', '-wal']) copyFileSync(`${path}${end}`, `${copy}${end}`)
    await (await openSqliteStore({ path: copy, secrets: SECRETS })).close()
    for (const end of ['', '-wal']) copyFileSync(`${path}${end}`, `${copy}${end}`)
    damage(copy, 'tokens')
    expect(await refusal(copy)).toMatch(/sluice\.db is damaged \(tokens: .*\): .*backup in its place/)
  })

  test('a store that finds damage in its database while it runs reports the damage once, and then accepts no operation', async () => {
    const path = await largeDatabase()
    damage(path, 'tokens')
    const store = await openedStore(path, 'own')
    const error: unknown = await store
      .read('listTokensWithKeys', { userId: 1 })
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StoreUnavailable)
    const reason = await store.failed
    expect(reason).toMatchObject({
      lasting: true,
      message: expect.stringMatching(/damaged.*backup/) as unknown,
    })
  })

  test('once the writer thread finds damage in the database, all waiting operations are refused', async () => {
    const path = await largeDatabase()
    damage(path, 'tokens')
    const store = await openedStore(path, 'own')
    const loads = Array.from({ length: 2000 }, (_, index) =>
      store.write('loadAccount', { tokenId: index + 1 }),
    )
    const results = await Promise.allSettled(loads)
    expect(results.some(({ status }) => status === 'rejected')).toBe(true)
    expect((await store.failed).lasting).toBe(true)
    await expect(store.write('hold', holdOf({ userId: 1, tokenId: 1 }, 'a'))).rejects.toThrow(/damaged/)
  })
})

test.each([
  ['a failed fsync', 1034, /could not be read or written/, true],
  ['a failed read', 266, /could not be read or written/, true],
  ['a disk that turned read-only', 8, /read-only/, true],
  ['a full disk', 13, /no room/, false],
  ['a full disk that the index of the log meets first', 4874, /no room/, false],
  ['another program that writes', 5, /locked by another program/, false],
])(
  'a database error is reported with a message that names its cause: %s (%i)',
  (_, errcode, words, lasting) => {
    const told = mapDatabaseError(Object.assign(new Error('as the driver says it'), { errcode }))
    expect(told).toBeInstanceOf(StoreUnavailable)
    expect(told).toMatchObject({ lasting, message: expect.stringMatching(words) as unknown })
  },
)

const DEAD_THREAD = `
  const [root, path] = process.argv.slice(1)
  const { openSqliteStore } = await import(root + '/src/store/sqlite/open.ts')
  const { deriveSecrets } = await import(root + '/src/store/secrets.ts')
  const store = await openSqliteStore({ path, secrets: deriveSecrets('a secret that only tests know') })
  store.failed.then((reason) => console.log('failed:', reason.lasting, reason.message))
  const tell = (error) => console.log(error.name)
  await Promise.all([
    store.write('growHold', { id: 'a', userId: 1, userId: 1, by: 1 }).catch(tell),
    store.read('userByName', 'nobody').then((user) => console.log(user), tell),
  ])
  await store.write('growHold', { id: 'a', userId: 1, userId: 1, by: 1 }).catch(tell)
  await store.close()
  console.log('closed')
`

/** Returns the output of a program whose database threads crash at an operation. */
function saidAfter(text: string, by: string): string[] {
  const copy = patchedSources([{ file: 'src/store/sqlite/serve-database.ts', text, by }])
  try {
    const path = join(copy.root, 'data', 'sluice.db')
    mkdirSync(join(copy.root, 'data'))
    const out = execFileSync(process.execPath, ['--input-type=module', '-e', DEAD_THREAD, copy.root, path], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 240_000,
    })
    return out.trim().split('\n')
  } finally {
    copy.discard()
  }
}

const RUN = 'else void thread.run(unpackBatch(message.operations)).then(send)'

test('if the database writer thread dies, waiting operations are refused and the failure is reported', () => {
  const said = saidAfter(RUN, `else if (options.role === 'writer') process.exit(3)\n    ${RUN}`)
  expect(said.filter((line) => line === 'StoreUnavailable')).toHaveLength(2)
  expect(said).toContain('failed: true the database thread has ended')
  expect(said.at(-1)).toBe('closed')
})

test('a database reader thread that dies is replaced at the next read, and charges continue', () => {
  const said = saidAfter(RUN, `else if (options.role === 'reader') process.exit(3)\n    ${RUN}`)
  expect(said).toEqual(['StoreUnavailable', 'closed'])
})
