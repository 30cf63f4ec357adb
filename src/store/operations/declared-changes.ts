import type { TokenSeed } from '../../domain/records/token.ts'
import type { UserSeed } from '../../domain/records/user.ts'
import { USER_STATUS } from '../../domain/records/user.ts'
import { declaredTermColumns } from '../term-columns.ts'
import type { PresentAccounts, PresentToken, PresentUser } from './present-accounts.ts'

/** Columns that change, of one row. */
export type ColumnChanges = Readonly<Record<string, string | number>>

/** Changes that declarations make in a database. */
export interface DeclaredChanges {
  /** Changes of present rows, by id. */
  readonly users: ReadonlyMap<number, ColumnChanges>
  readonly tokens: ReadonlyMap<number, ColumnChanges>
  /** Users who are enabled: sessions from before they were disabled must not become valid again. */
  readonly enabled: ReadonlySet<number>
  readonly newUsers: readonly UserSeed[]
  /** Tokens that are missing; `userId` is undefined where the user is new. */
  readonly newTokens: readonly NewTokenSeed[]
}

/** Declared token that is missing. */
export interface NewTokenSeed {
  readonly seed: TokenSeed
  readonly userId: number | undefined
  readonly username: string
}

/**
 * Compares declarations with what is present. A deleted user or token counts as present, even if its name was
 * given to another user. Present rows change in their declared status, budget and rate limit only.
 */
export function declaredChanges(present: PresentAccounts, seeds: readonly UserSeed[]): DeclaredChanges {
  const users = new RowChanges()
  const tokens = new RowChanges()
  const enabled = new Set<number>()
  const newUsers: UserSeed[] = []
  const newTokens: NewTokenSeed[] = []
  for (const seed of seeds) {
    const user = present.userOf(seed.username)
    if (!user) {
      newUsers.push(seed)
      for (const token of seed.tokens)
        newTokens.push({ seed: token, userId: undefined, username: seed.username })
      continue
    }
    const changed = users.declare(user, seed)
    if (changed.has('status') && seed.status === USER_STATUS.enabled) enabled.add(user.id)
    if (user.deleted_time !== null) continue
    for (const token of seed.tokens) {
      const same = present.tokensOf(user.id, token.name, token.key)
      if (same.length === 0) newTokens.push({ seed: token, userId: user.id, username: seed.username })
      for (const one of same) if (one.deleted_time === null) tokens.declare(one, token)
    }
  }
  return { users: users.changes, tokens: tokens.changes, enabled, newUsers, newTokens }
}

/** Changes of rows, of which several declarations may mean the same one: the last one counts. */
class RowChanges {
  readonly changes = new Map<number, ColumnChanges>()

  /** Adds a declaration. Returns the names of the columns that it changes. */
  declare(
    row: PresentUser | PresentToken,
    { status, terms }: Pick<UserSeed | TokenSeed, 'status' | 'terms'>,
  ): ReadonlySet<string> {
    const before = this.changes.get(row.id) ?? {}
    const now: Readonly<Record<string, unknown>> = { ...row, ...before }
    const wanted = { ...(status !== undefined && { status }), ...(terms && declaredTermColumns(terms, row)) }
    const changed = Object.entries(wanted).filter(([name, value]) => now[name] !== value)
    if (changed.length > 0) this.changes.set(row.id, { ...before, ...Object.fromEntries(changed) })
    return new Set(changed.map(([name]) => name))
  }
}
