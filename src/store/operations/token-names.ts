import type { Db } from './operation.ts'

/** Names of a token and of its user. */
export interface TokenNames {
  readonly token_id: number
  readonly token_name: string
  readonly username: string
}

/** Reads the names of tokens, deleted ones too, and of their users; unknown ids are left out. */
export function tokenNames(
  db: Db,
  { tokenIds }: { readonly tokenIds: readonly number[] },
): Promise<TokenNames[]> {
  return db
    .selectFrom('tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .where('tokens.id', 'in', tokenIds)
    .select(['tokens.id as token_id', 'tokens.name as token_name', 'users.username'])
    .execute()
}
