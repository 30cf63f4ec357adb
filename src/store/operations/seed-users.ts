import { randomInt } from 'node:crypto'
import type { TokenStatus } from '../../domain/token.ts'
import type { Role, User } from '../../domain/user.ts'
import type { Secrets } from '../secrets.ts'
import { createToken } from './create-token.ts'
import { createUser } from './create-user.ts'
import type { Db } from './operation.ts'

/** A token that configuration declares; what it leaves out has the default of a token that is made over HTTP. */
export interface TokenSeed {
  readonly name: string
  /** The plain key without `sk-`; undefined = one is generated. */
  readonly key?: string | undefined
  readonly status?: TokenStatus | undefined
  readonly expiredTime?: number | undefined
  readonly remainQuota?: number | undefined
  readonly unlimitedQuota?: boolean | undefined
  readonly modelLimitsEnabled?: boolean | undefined
  readonly modelLimits?: string | undefined
  readonly allowIps?: string | null | undefined
  readonly group?: string | undefined
  readonly vendorRoutes?: string | undefined
}

/** A user that configuration declares. */
export interface UserSeed {
  readonly id?: number | undefined
  readonly username: string
  readonly role?: Role | undefined
  readonly status?: User['status'] | undefined
  readonly group?: string | undefined
  readonly quota?: number | undefined
  readonly accessToken?: string | undefined
  readonly tokens: readonly TokenSeed[]
}

/** What a run of the seeds made; what was there already is not in it. */
export interface Seeded {
  readonly users: readonly User[]
  readonly tokens: readonly { readonly id: number; readonly userId: number; readonly name: string }[]
}

/**
 * Makes the declared users that are absent, by name, and of each the declared tokens that are absent, by name; a deleted
 * one counts as present. What is there is left alone, but for a declared status. All or nothing.
 */
export async function seedUsers(
  db: Db,
  { seeds, nowSeconds }: { readonly seeds: readonly UserSeed[]; readonly nowSeconds: number },
  secrets: Secrets,
): Promise<Seeded> {
  const users: User[] = []
  const tokens: { id: number; userId: number; name: string }[] = []
  for (const seed of seeds) {
    let userId = await applyToPresentUser(db, seed)
    if (userId === undefined) {
      const user = await createUser(db, newUser(seed, nowSeconds), secrets)
      users.push(user)
      userId = user.id
    }
    for (const tokenSeed of seed.tokens) {
      if (await applyToPresentToken(db, userId, tokenSeed)) continue
      const token = await createToken(db, newToken(userId, tokenSeed, nowSeconds), secrets)
      tokens.push({ id: token.id, userId, name: token.name })
    }
  }
  return { users, tokens }
}

async function applyToPresentUser(db: Db, seed: UserSeed): Promise<number | undefined> {
  const user = await db
    .selectFrom('users')
    .select(['id', 'status'])
    .where('username', '=', seed.username)
    .executeTakeFirst()
  if (user && seed.status !== undefined && seed.status !== user.status) {
    await db.updateTable('users').set({ status: seed.status }).where('id', '=', user.id).execute()
  }
  return user?.id
}

async function applyToPresentToken(db: Db, userId: number, seed: TokenSeed): Promise<boolean> {
  const present = await db
    .selectFrom('tokens')
    .select('id')
    .where('user_id', '=', userId)
    .where('name', '=', seed.name)
    .executeTakeFirst()
  if (present && seed.status !== undefined) {
    await db
      .updateTable('tokens')
      .set({ status: seed.status })
      .where('user_id', '=', userId)
      .where('name', '=', seed.name)
      .where('deleted_time', 'is', null)
      .execute()
  }
  return present !== undefined
}

function newUser(seed: UserSeed, nowSeconds: number): Parameters<typeof createUser>[1] {
  return {
    id: seed.id,
    username: seed.username,
    role: seed.role ?? 1,
    status: seed.status ?? 1,
    group: seed.group ?? 'default',
    quota: seed.quota ?? 0,
    accessToken: seed.accessToken ?? null,
    createdTime: nowSeconds,
  }
}

function newToken(userId: number, seed: TokenSeed, nowSeconds: number): Parameters<typeof createToken>[1] {
  return {
    userId,
    name: seed.name,
    key: seed.key ?? generatedKey(),
    status: seed.status ?? 1,
    createdTime: nowSeconds,
    expiredTime: seed.expiredTime ?? -1,
    remainQuota: seed.remainQuota ?? 0,
    unlimitedQuota: seed.unlimitedQuota ?? false,
    modelLimitsEnabled: seed.modelLimitsEnabled ?? false,
    modelLimits: seed.modelLimits ?? '',
    allowIps: seed.allowIps ?? null,
    group: seed.group ?? '',
    vendorRoutes: seed.vendorRoutes ?? '',
  }
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const KEY_LENGTH = 48

function generatedKey(): string {
  return Array.from({ length: KEY_LENGTH }, () => BASE62[randomInt(BASE62.length)]).join('')
}
