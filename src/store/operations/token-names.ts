import type { Db } from './operation.ts'

/** Names of a token and of its user. */
export interface TokenNames {
  readonly tokenId: number
  readonly tokenName: string
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
    .select(['tokens.id as tokenId', 'tokens.name as tokenName', 'users.username'])
    .execute()
}
