import type { NewToken } from '../../src/domain/records/token.ts'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { MessageChannel } from 'node:worker_threads'
import { inject, onTestFinished } from 'vitest'
import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import type { HoldOpening, SettledCall } from '../../src/domain/records/usage.ts'
import type { NewUser } from '../../src/domain/records/user.ts'
import { deriveSecrets } from '../../src/store/secrets.ts'
import type { NodeFile } from '../../src/store/node-file.ts'
import { openNodeFile, openSqliteStore } from '../../src/store/sqlite/open.ts'
import { serveDatabase } from '../../src/store/sqlite/serve-database.ts'
import type { Store } from '../../src/store/store.ts'

/** The keys of the tests' databases. */
export const SECRETS = deriveSecrets('a secret that only tests know')

/** A folder that is deleted after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A database file for one test, with schema and first rows, which is faster than opening an empty one. */
export async function preparedFile(): Promise<string> {
  return copyOf(await (template ??= makeTemplate('empty')))
}

/** A file for one test, with the content of another. */
export function copyOf(template: string): string {
  const path = join(temporaryFolder(), 'sluice.db')
  cpSync(template, path)
  return path
}

// One template of each kind for each test process.
let template: Promise<string> | undefined
let accountTemplate: Promise<string> | undefined

/** A file that stays until the end of the run, filled once. */
export async function makeTemplate(
  name: string,
  fill: (store: Store) => Promise<void> = () => Promise.resolve(),
): Promise<string> {
  const path = join(inject('preparedFolder'), `${name}-${process.pid}.db`)
  const store = await openSqliteStore({ path, secrets: SECRETS, onCallingThread: true })
  await fill(store)
  await store.close()
  return path
}

/**
 * A store on its own file, closed after the test. Its database runs on the calling thread, as in commands,
 * because starting threads, as a gateway does, would take most of a test's time.
 */
export async function openedStore(file?: string, threads: 'calling' | 'own' = 'calling'): Promise<Store> {
  const path = file ?? (await preparedFile())
  const store = await openSqliteStore({ path, secrets: SECRETS, onCallingThread: threads === 'calling' })
  onTestFinished(() => store.close())
  return store
}

/** The file of a node of the bank `bank`, on the calling thread like `openedStore`. The caller closes it. */
export function nodeFileAt(path: string): Promise<NodeFile> {
  const { port1, port2 } = new MessageChannel()
  serveDatabase(port2)
  return openNodeFile({ path, bankId: 'bank', thread: port1 })
}

/** One user and one token of that user. */
export interface Account {
  userId: number
  tokenId: number
  who: { userId: number; tokenId: number }
}

/**
 * A store with one user and one token of that user, closed after the test; `path` names a file that does not
 * exist. It begins with a copy: threads that open it need neither migrations nor Kysely.
 */
export async function storeWithAccount(
  path = join(temporaryFolder(), 'sluice.db'),
  threads?: 'calling' | 'own',
): Promise<Account & { store: Store }> {
  accountTemplate ??= makeTemplate('account', async (store) => void (await addAccount(store)))
  cpSync(await accountTemplate, path, { force: false, errorOnExist: true })
  const store = await openedStore(path, threads)
  const who = { userId: 1, tokenId: 1 }
  return { store, ...who, who }
}

/** Adds the user `ada` and a token of that user. */
export async function addAccount(store: Store): Promise<Account> {
  const user = await store.write('createUser', newUser())
  const token = await store.write('createToken', newToken(user.id))
  const who = { userId: user.id, tokenId: token.id }
  return { ...who, who }
}

/** A user with 1,000,000 quota units. */
export function newUser(of: Partial<NewUser> = {}): NewUser {
  return {
    username: 'ada',
    role: 1,
    status: 1,
    group: 'default',
    quota: 1_000_000,
    accessToken: null,
    created_time: 1_760_000_000,
    ...of,
  }
}

/** A token with 500,000 quota units. */
export function newToken(userId: number, of: Partial<NewToken> = {}): NewToken {
  return {
    user_id: userId,
    name: 'main',
    key: 'k1',
    status: 1,
    created_time: 1_760_000_000,
    expired_time: -1,
    remain_quota: 500_000,
    unlimited_quota: false,
    model_limits_enabled: false,
    model_limits: '',
    allow_ips: null,
    group: '',
    vendor_routes: '',
    ...of,
  }
}

/** A hold of 1,000 quota units, 100 of them for the prompt, by the owner `now`. */
export function holdOf(
  who: { userId: number; tokenId: number },
  id: string,
  of: Partial<HoldOpening> = {},
): HoldOpening {
  return {
    user_id: who.userId,
    token_id: who.tokenId,
    id,
    owner: 'now',
    amount: 1000,
    prompt_amount: 100,
    started_ms: 1_760_000_100_000,
    model: 'm',
    requested_model: 'm',
    channel: 'c',
    group: 'default',
    stream: false,
    price_version: 'v1',
    kind: 'chat',
    budgets: '',
    session: '',
    ...of,
  }
}

/** A complete answer that cost 300 quota units. */
export function settledCall(
  who: { userId: number; tokenId: number },
  id: string,
  of: Partial<SettledCall> = {},
): SettledCall {
  return {
    user_id: who.userId,
    token_id: who.tokenId,
    id,
    quota: 300,
    reason: 'complete',
    delivered: true,
    ended_ms: 1_760_000_101_500,
    usage: { ...NO_USAGE, input: 10, output: 20 },
    model: 'm',
    requested_model: 'm',
    upstream_model: 'm-2026',
    channel: 'c',
    group: 'default',
    stream: false,
    price_version: 'v1',
    kind: 'chat',
    duration_ms: 1500,
    first_byte_ms: 400,
    budgets: '',
    ...of,
  }
}

/** Usage with another number in each count. */
export const USAGE_OF_ALL_COUNTS: Usage = {
  input: 1,
  cacheRead: 2,
  cacheWrite5m: 3,
  cacheWrite1h: 4,
  cacheWrite30m: 16,
  cacheWrite12h: 17,
  output: 5,
  reasoning: 6,
  webSearches: 7,
  audioInput: 8,
  imageInput: 9,
  audioOutput: 10,
  imageOutput: 11,
  seconds: 12,
  characters: 13,
  images: 14,
  searchUnits: 15,
}
