import type { Db } from './operation.ts'

/** What a new user or token may not have, as another has, or had, it. */
export interface TakenIdentifiers {
  readonly users: readonly {
    readonly id: number
    /** Of a deleted user the name that it had. */
    readonly username: string
    readonly group: string
    readonly role: number
    readonly isDeleted: boolean
    readonly accessTokenHash: string | null
  }[]
  readonly tokens: readonly { readonly id: number; readonly keyHash: string }[]
}

/** All users and tokens, as far as others must differ from them. */
export async function takenIdentifiers(db: Db): Promise<TakenIdentifiers> {
  const users = await db
    .selectFrom('users')
    .select(['id', 'username', 'first_username', 'group_name', 'role', 'deleted_time', 'access_token_hash'])
    // A name may be a deleted user's and a live one's: the live one is the last.
    .orderBy((eb) => eb.case().when('deleted_time', 'is', null).then(1).else(0).end())
    .orderBy('id')
    .execute()
  const tokens = await db.selectFrom('tokens').select(['id', 'key_hash']).orderBy('id').execute()
  return {
    users: users.map((row) => ({
      id: row.id,
      username: row.deleted_time === null ? row.username : (row.first_username ?? row.username),
      group: row.group_name,
      role: row.role,
      isDeleted: row.deleted_time !== null,
      accessTokenHash: row.access_token_hash,
    })),
    tokens: tokens.map((row) => ({ id: row.id, keyHash: row.key_hash })),
  }
}
