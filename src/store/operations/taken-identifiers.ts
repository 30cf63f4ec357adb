import type { Db } from './operation.ts'

/** Ids, names and keys that existing users and tokens have, deleted ones included. */
export interface TakenIdentifiers {
  readonly users: readonly {
    readonly id: number
    /** Current name; of a deleted user, the name before the deletion. */
    readonly username: string
    readonly group: string
    readonly role: number
    readonly isDeleted: boolean
    readonly accessTokenHash: string | null
  }[]
  readonly tokens: readonly { readonly id: number; readonly keyHash: string }[]
}

/** Reads the identifiers of all users and tokens. */
export async function takenIdentifiers(db: Db): Promise<TakenIdentifiers> {
  const users = await db
    .selectFrom('users')
    .select(['id', 'username', 'first_username', 'group_name', 'role', 'deleted_time', 'access_token_hash'])
    // A deleted and a live user may share a name; the live one comes last.
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
