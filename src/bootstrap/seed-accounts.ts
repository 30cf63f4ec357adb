import { randomBytes } from 'node:crypto'
import type { UserSeed } from '../domain/seed.ts'
import { generateKey } from '../store/generate-key.ts'
import type { Store } from '../store/store.ts'

/** A thousand dollars at the default of quota units per dollar. */
const FIRST_QUOTA = 500_000_000

/** What the first user is told, once. */
export interface FirstCredentials {
  readonly userId: number
  readonly accessToken: string
  /** With `sk-`. */
  readonly key: string
}

/**
 * Makes the declared users and tokens that are absent and, in a database without users, a root user where
 * none is declared, whose credentials it resolves to.
 */
export async function seedAccounts(
  store: Store,
  seeds: readonly UserSeed[],
): Promise<FirstCredentials | undefined> {
  const isFirstStart = (await store.read('countUsers')) === 0
  await store.write('seedUsers', {
    seeds,
    nowSeconds: Math.floor(Date.now() / 1000),
  })
  return isFirstStart && !seeds.some(({ role }) => role === 100) ? makeFirstUser(store) : undefined
}

/**
 * Makes the root user of an empty database, and a key without limits. Nothing of it can be read again but the
 * key. Undefined where another node was faster: it has told them.
 */
async function makeFirstUser(store: Store): Promise<FirstCredentials | undefined> {
  const nowSeconds = Math.floor(Date.now() / 1000)
  const accessToken = randomBytes(24).toString('base64url')
  const key = generateKey()
  const { users } = await store.write('seedUsers', {
    nowSeconds,
    seeds: [
      {
        id: undefined,
        username: 'root',
        role: 100,
        status: undefined,
        group: 'default',
        quota: FIRST_QUOTA,
        accessToken,
        tokens: [
          {
            name: 'first',
            key,
            status: undefined,
            expiredTime: -1,
            remainQuota: 0,
            unlimitedQuota: true,
            modelLimitsEnabled: false,
            modelLimits: '',
            allowIps: null,
            group: '',
            vendorRoutes: '',
          },
        ],
      },
    ],
  })
  const [user] = users
  return user && { userId: user.id, accessToken, key: `sk-${key}` }
}
