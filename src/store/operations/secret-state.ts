import type { SecretState } from '../secret-state.ts'
import type { Db } from './operation.ts'

/** Reads which secret the database has. */
export function secretState(db: Db): Promise<SecretState> {
  return db
    .selectFrom('store_identity')
    .leftJoin('secret_state', 'secret_state.id', 'store_identity.id')
    .select([
      'key_check as keyCheck',
      'secret_state.next_check as nextCheck',
      'secret_state.lookup_cipher as lookupCipher',
    ])
    .executeTakeFirstOrThrow()
}

/** Records which secrets a node knows: the one that it encrypts with, and another one that it accepts. */
export async function recordNodeSecrets(
  db: Db,
  {
    node,
    check,
    otherCheck,
  }: { readonly node: string; readonly check: string; readonly otherCheck: string | null },
): Promise<void> {
  const values = { key_check: check, other_check: otherCheck }
  await db
    .insertInto('node_secrets')
    .values({ node, ...values })
    .onConflict((on) => on.column('node').doUpdateSet(values))
    .execute()
}
