import { randomBytes } from 'node:crypto'
import type { ChangeOrigin } from '../domain/audit.ts'
import type { DeclaredUser } from '../domain/records/user.ts'
import { Role } from '../domain/role.ts'
import { generateKey } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'

/** Quota units of the first user: 1,000 US dollars at the default `quota_per_unit`. */
const FIRST_QUOTA = 500_000_000

/**
 * Number of users and tokens that are compared with the database at a time. The comparison takes the
 * database's thread a few milliseconds.
 */
const MAX_ACCOUNTS = 1_000

/** Origin, in the audit log, of changes that come from the configuration file or from the first start. */
export function configFileOrigin(actor: string): ChangeOrigin {
  return { actorId: 0, actor, via: 'file', address: '', atMs: Date.now() }
}

/** Credentials of the first user, which are shown once. */
export interface FirstCredentials {
  readonly userId: number
  readonly accessToken: string
  /** The API key, including `sk-`. */
  readonly key: string
}

/**
 * Creates those users and tokens declared in gateway.yaml that do not exist yet. If the database has no users
 * and none of the declared ones is root, it also creates a root user, and resolves to that user's
 * credentials.
 */
export async function seedAccounts(
  store: Store,
  seeds: readonly DeclaredUser[],
): Promise<FirstCredentials | undefined> {
  const isFirstStart = (await store.read('countUsers')) === 0
  const pending = isFirstStart ? seeds : await pendingSeeds(store, seeds)
  if (pending.length > 0)
    await store.write('seedUsers', {
      seeds: pending,
      nowSeconds: Math.floor(Date.now() / 1000),
      origin: configFileOrigin('gateway.yaml'),
    })
  return isFirstStart && !seeds.some(({ role }) => role === Role.root) ? makeFirstUser(store) : undefined
}

/**
 * Resolves to the declarations that would change the database, usually none. They are compared in batches, so
 * that calls can run in between.
 */
async function pendingSeeds(store: Store, seeds: readonly DeclaredUser[]): Promise<DeclaredUser[]> {
  const pending: DeclaredUser[] = []
  for (const part of partsOf(seeds))
    for (const index of await store.read('pendingDeclaredUsers', { seeds: part }))
      pending.push(...part.slice(index, index + 1))
  return pending
}

function* partsOf(seeds: readonly DeclaredUser[]): Iterable<readonly DeclaredUser[]> {
  let [start, accounts] = [0, 0]
  for (const [index, { tokens }] of seeds.entries()) {
    if (accounts > MAX_ACCOUNTS) {
      yield seeds.slice(start, index)
      start = index
      accounts = 0
    }
    accounts += 1 + tokens.length
  }
  if (start < seeds.length) yield seeds.slice(start)
}

/**
 * Creates the root user of an empty database, with an API key without quota limit. Only the key can be read
 * again later. Resolves to undefined if another node has created the user first.
 */
async function makeFirstUser(store: Store): Promise<FirstCredentials | undefined> {
  const nowSeconds = Math.floor(Date.now() / 1000)
  const accessToken = randomBytes(24).toString('base64url')
  const key = generateKey()
  const { users } = await store.write('seedUsers', {
    nowSeconds,
    origin: configFileOrigin('first start'),
    seeds: [
      {
        id: undefined,
        username: 'root',
        role: Role.root,
        status: undefined,
        group: 'default',
        quota: FIRST_QUOTA,
        access_token: accessToken,
        tokens: [
          {
            name: 'first',
            key,
            status: undefined,
            remain_quota: 0,
            unlimited_quota: true,
          },
        ],
      },
    ],
  })
  const [user] = users
  return user && { userId: user.id, accessToken, key: `sk-${key}` }
}
